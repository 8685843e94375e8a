"""Why an action of a link was refused, as its list of conflicts says it."""

from __future__ import annotations

import pytest

from annals.domain.errors.http_errors import NotReceiving
from annals.domain.errors.problems import ActionNotSupported, NotFound, Problem
from annals.projections.replication.refusals import refusal_of


def raising(problem: Problem) -> None:
    raise problem


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (ActionNotSupported(action="PUT"), "The specified action (PUT) is not supported for: /dirs/d."),
        (NotFound("/dirs/e"), "/dirs/e"),
    ],
)
def test_a_reason_names_what_it_is_about(problem: Problem, reason: str) -> None:
    """LEG-907: the entity of the problem, else that which the link wanted to write."""
    text = refusal_of(lambda: raising(problem), "/dirs/d")
    assert text is not None and reason in text and "<" not in text
    assert refusal_of(lambda: None, "/dirs/d") is None


def test_a_link_that_has_ended_is_no_conflict() -> None:
    """LEG-909."""
    with pytest.raises(NotReceiving):
        refusal_of(lambda: raising(NotReceiving("/-/links/l")), "/dirs/d")

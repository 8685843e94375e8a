"""Why an action of a link was refused, for its list of conflicts."""

from __future__ import annotations

from collections.abc import Callable

from annals.domain.errors.http_errors import NotReceiving
from annals.domain.errors.problems import Problem


def refusal_of(action: Callable[[], object], subject: str) -> str | None:
    """The reason why an action is refused; None if it succeeds. subject: what it is about, if the reason names none.

    Raises: NotReceiving if the link was paused, promoted or deleted, which is no conflict of anything.
    """
    try:
        action()
    except NotReceiving:
        raise
    except Problem as problem:
        return reason_of(problem, subject)
    return None


def reason_of(problem: Problem, subject: str | None = None) -> str:
    """What a problem says, with its details. subject: see `refusal_of`."""
    return " ".join(filter(None, (problem.text(subject), problem.detail)))

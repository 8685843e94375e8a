"""Copies of subjects whose names stand for other ones: an alias is followed below `/subjects` (CSR-312)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.rest_api import RestAnswer, RestError
from annals.projections.confluent_copy.rest_reader import RestReader
from annals.projections.confluent_copy.stoppable import CopyStopped
from tests.projections.confluent_copy.served_registry import ServedRegistry, export_lines, served_registry

X, Y = Subject(".", "x"), Subject(".", "y")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[ServedRegistry]:
    """The subjects `x`, with a soft-deleted version and an alias, and `y`, for which its name stands."""
    with served_registry(tmp_path, "source") as registry:
        registry.done("PUT", "/config/x", {"compatibility": "NONE"})
        for subject, number in (("y", 1), ("x", 2), ("x", 3)):
            registry.done("POST", f"/subjects/{subject}/versions", {"schema": fixed(number)})
        registry.done("DELETE", "/subjects/x/versions/1")
        registry.done("PUT", "/config/x", {"alias": "y"})
        yield registry


@pytest.fixture
def target(tmp_path: Path) -> Iterator[ServedRegistry]:
    with served_registry(tmp_path, "target") as registry:
        registry.done("PUT", "/config", {"compatibility": "NONE"})
        yield registry


def fixed(size: int) -> str:
    return f'{{"type": "fixed", "name": "F", "size": {size}}}'


def register_behind_alias(registry: ServedRegistry, text: str) -> None:
    """Registers a schema in `x` itself."""
    registry.done("PUT", "/config/x", {"alias": None})
    registry.done("POST", "/subjects/x/versions", {"schema": text})
    registry.done("PUT", "/config/x", {"alias": "y"})


def outcomes(source: ServedRegistry, target: ServedRegistry, **options: Any) -> list[str]:
    """The outcomes of an export by subject and version: first those of `x`, then that of `y`."""
    return [line["outcome"] for line in export_lines(source, target, **options)]


@pytest.mark.parametrize("new_ids", [False, True])
def test_a_subject_with_an_alias_is_exported_as_itself(
    source: ServedRegistry, target: ServedRegistry, new_ids: bool
) -> None:
    # CSR-1005, CSR-1008
    assert outcomes(source, target, new_ids=new_ids) == ["created"] * 3
    position = target.last_position()
    assert outcomes(source, target, new_ids=new_ids) == ["equal"] * 3
    assert target.last_position() == position
    register_behind_alias(source, fixed(4))
    assert outcomes(source, target, new_ids=new_ids, is_dry=True)[-2:] == ["created", "equal"]
    assert target.last_position() == position
    assert outcomes(source, target, new_ids=new_ids) == ["equal", "equal", "created", "equal"]
    for subject in (X, Y):
        here, there = (RestReader(registry).read(subject) for registry in (source, target))
        texts = [[(one.number, one.text, one.is_deleted) for one in copy.versions] for copy in (here, there)]
        assert texts[0] == texts[1]
        assert (there.config, there.mode) == (here.config, None)


@pytest.mark.parametrize("new_ids", [False, True])
@pytest.mark.parametrize("failure", [RestError("no", 403), CopyStopped()], ids=["refused", "stopped"])
def test_the_alias_is_put_back_if_the_copy_fails(
    source: ServedRegistry, target: ServedRegistry, monkeypatch: pytest.MonkeyPatch, new_ids: bool, failure: Exception
) -> None:
    # CSR-1008
    outcomes(source, target, new_ids=new_ids)
    register_behind_alias(source, fixed(4))
    send = target.send

    def failing(method: str, path: str, body: Any = None) -> RestAnswer:
        if (method, path) == ("POST", "/subjects/x/versions"):
            raise failure
        return send(method, path, body)

    monkeypatch.setattr(target, "send", failing)
    with suppress(CopyStopped):
        assert outcomes(source, target, new_ids=new_ids) == ["failed", "failed", "failed", "equal"]
    there = RestReader(target).read(X)
    assert (there.config["alias"], there.mode, len(there.versions)) == ("y", None, 2)


@pytest.mark.parametrize(("is_dry", "outcome"), [(False, "equal"), (True, "created")])
def test_texts_of_another_form(source: ServedRegistry, target: ServedRegistry, is_dry: bool, outcome: str) -> None:
    # CSR-1008: only the other registry can compare them, and for that the alias has to go, which no dry run does
    outcomes(source, target, new_ids=True)
    register_behind_alias(source, '{"name": "F", "namespace": "n", "type": "fixed", "size": 9}')
    register_behind_alias(target, '{"name": "n.F", "type": "fixed", "size": 9}')
    position = target.last_position()
    lines = export_lines(source, target, new_ids=True, is_dry=is_dry)
    assert [line["outcome"] for line in lines] == [outcome] * 3 + ["equal"]
    assert [one["reason"] for one in lines if "reason" in one] == (
        ["not compared in a dry run, because the subject has an alias there"] * 3 if is_dry else []
    )
    assert RestReader(target).read(X).config["alias"] == "y"
    assert is_dry == (target.last_position() == position)


def test_a_registry_that_does_not_say_what_is_deleted(source: ServedRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    # CSR-1002: an older release
    expected, send = RestReader(source).read(X), source.send

    def older(method: str, path: str, body: Any = None) -> RestAnswer:
        answer = send(method, path, body)
        if path.startswith("/schemas?"):
            for one in answer.body:
                del one["deleted"]
        return answer

    monkeypatch.setattr(source, "send", older)
    assert [(one.number, one.is_deleted) for one in expected.versions] == [(1, True), (2, False)]
    assert RestReader(source).read(X) == expected
    assert dict(RestReader(source).read_all([X])) == {X: expected}

"""What a second import does with versions that were changed since the first, here or by an interrupted copy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from annals.api.compat.confluent import importing
from annals.projections.confluent_copy.topic_records import TopicRecord, TopicSource
from tests.projections.confluent_copy.served_registry import ServedRegistry, import_lines, served_registry

VERSION = "/schemagroups/default/schemas/s/versions/1"


@pytest.fixture
def target(tmp_path: Path) -> Iterator[ServedRegistry]:
    with served_registry(tmp_path, "target") as registry:
        yield registry


def source(*versions: str) -> TopicSource:
    """A source with the versions of one subject, see `records`."""
    return TopicSource(records(*versions))


def records(*versions: str) -> Iterator[TopicRecord]:
    """The records of the versions of one subject. versions: their states, "live" or "deleted"; "json" is live, too.

    One that is empty is not there.
    """
    for number, state in enumerate(versions, 1):
        text = '{"type": "object"}' if state == "json" else f'{{"type": "fixed", "name": "F", "size": {number}}}'
        value: dict[str, Any] = {"subject": "s", "version": number, "id": number, "schema": text}
        value |= {"schemaType": "JSON"} if state == "json" else {}
        key = {"keytype": "SCHEMA", "subject": "s", "version": number, "magic": 1}
        if state:
            yield TopicRecord(key, {**value, "deleted": state == "deleted"})


@pytest.mark.parametrize("first", ["deleted", "live"])
@pytest.mark.parametrize("change", [{"description": "ours"}, {}])
@pytest.mark.parametrize("deletes", [False, True])
def test_a_version_that_was_restored_here_stays(
    target: ServedRegistry, first: str, change: dict[str, str], deletes: bool
) -> None:
    # CSR-1005, CSR-1011: a restore is a change here, also if nothing else was changed
    import_lines(source(first, "live"), target)
    before_deletion = target.api.get(f"/-/history{VERSION}")[0]["position"] + 1
    target.api.now += timedelta(seconds=1)
    import_lines(source("deleted", "live"), target, deletes=True)
    assert target.versions() == [("s", 1, 1, True), ("s", 2, 2, False)]
    target.api.done("POST", f"/-/restore{VERSION}?asof={before_deletion}")
    if change:
        target.api.done("PATCH", f"{VERSION}$details", change)
    position = target.last_position()
    for _ in range(2):
        lines = import_lines(source("deleted", "live"), target, deletes=deletes)
        assert [line["outcome"] for line in lines] == ["kept", "equal"]
        assert lines[0]["reason"] == "the source has deleted it"
        assert target.versions() == [("s", 1, 1, False), ("s", 2, 2, False)]
    assert target.last_position() == position


@pytest.mark.parametrize("later", ["live", "json"])
@pytest.mark.parametrize("deletes", [False, True])
def test_an_interrupted_copy_is_finished(
    target: ServedRegistry, monkeypatch: pytest.MonkeyPatch, later: str, deletes: bool
) -> None:
    # CSR-1003, CSR-1005: it ended before the interaction that soft-deletes. Another type changes the format of all
    with monkeypatch.context() as patched:
        patched.setattr(importing._Import, "deletion", None)
        import_lines(source("deleted", "live"), target)
    assert target.versions() == [("s", 1, 1, False), ("s", 2, 2, False)]
    target.api.now += timedelta(seconds=1)
    lines = import_lines(source("deleted", "live", later), target, deletes=deletes)
    assert [line["outcome"] for line in lines] == ["deleted" if deletes else "created", "equal", "created"]
    assert target.versions() == [("s", 1, 1, True), ("s", 2, 2, False), ("s", 3, 3, False)]


def test_deletions_are_followed_after_a_schema_of_another_type(target: ServedRegistry) -> None:
    # CSR-1011: the copy itself gives all versions another format, so nobody has changed them here
    for states in (("live", "live"), ("live", "live", "json"), ("", "live", "json"), ("", "", "json")):
        target.api.now += timedelta(seconds=1)
        lines = import_lines(source(*states), target, deletes=True)
    assert [(line["version"], line["outcome"]) for line in lines] == [(2, "deleted"), (3, "equal")]
    assert [version for version in target.versions() if not version[3]] == [("s", 3, 3, False)]


def test_a_reference_to_the_latest_version_stays_the_same(target: ServedRegistry) -> None:
    # CSR-508, CSR-1005: what it refers to is written first, and a later version changes nothing
    reference = {"name": "F", "subject": "s", "version": -1}
    user = '{"type": "record", "name": "U", "fields": [{"name": "f", "type": "F"}]}'
    key = {"keytype": "SCHEMA", "subject": "a", "version": 1, "magic": 1}
    value = {"subject": "a", "version": 1, "id": 2, "schema": user, "references": [reference]}
    for states, expected in ((("live",), "created"), (("live",), "equal"), (("live", "", "live"), "equal")):
        copies = TopicSource([TopicRecord(key, value), *records(*states)])
        assert [line["outcome"] for line in import_lines(copies, target)][:2] == [expected] * 2
    answer = target.done("GET", "/subjects/a/versions/1").json()
    assert answer["references"] == [{**reference, "version": 1}]

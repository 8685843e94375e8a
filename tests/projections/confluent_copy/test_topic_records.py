"""The subjects that records of a `_schemas` topic result in, and the order in which subjects are written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from annals.domain.confluent.schema_versions import NamedReference
from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.latest_references import numbered_copies
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy
from annals.projections.confluent_copy.topic_records import InvalidRecord, TopicSource, dump_records
from annals.projections.confluent_copy.write_order import write_waves


def schema(version: int, subject: str = "s", **members: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    key = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
    return key, {"subject": subject, "version": version, "id": version, "schema": '"int"', "deleted": False, **members}


def key(type: str, **members: Any) -> dict[str, Any]:
    return {"keytype": type, "magic": 0, **members}


# CSR-1010: records, and the live versions, soft-deleted versions, level and mode of the subject `s` after them.
RECORDS: list[tuple[str, list[tuple[Any, Any]], tuple[list[int], list[int], str | None, str | None]]] = [
    ("a schema", [schema(1)], ([1], [], None, None)),
    ("the last record counts", [schema(1), schema(2), schema(1, deleted=True)], ([2], [1], None, None)),
    ("a tombstone", [schema(1), schema(2), (schema(1)[0], None)], ([2], [], None, None)),
    ("no operation", [(key("NOOP"), None), schema(1)], ([1], [], None, None)),
    (
        "a subject up to a version",
        [schema(1), schema(2), (key("DELETE_SUBJECT", subject="s"), {"subject": "s", "version": 1})],
        ([2], [1], None, None),
    ),
    (
        "a cleared subject keeps its live versions",
        [schema(1, deleted=True), schema(2), (key("CLEAR_SUBJECT", subject="s"), {"subject": "s"})],
        ([2], [], None, None),
    ),
    ("a level", [(key("CONFIG", subject="s"), {"compatibilityLevel": "FULL"})], ([], [], "FULL", None)),
    ("a level of old", [(key("CONFIG", subject="s"), {"compatibility": "NONE"})], ([], [], "NONE", None)),
    (
        "a level removed",
        [(key("CONFIG", subject="s"), {"compatibilityLevel": "FULL"}), (key("CONFIG", subject="s"), None)],
        ([], [], None, None),
    ),
    ("a mode", [(key("MODE", subject="s"), {"mode": "READONLY"})], ([], [], None, "READONLY")),
    ("a key of later programs", [(key("CONTEXT", context="."), {}), schema(1)], ([1], [], None, None)),
    ("another subject", [schema(1, ":.c:s")], ([], [], None, None)),
]


@pytest.mark.parametrize(("records", "left"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS])
@pytest.mark.parametrize("separator", ["\t", None])
def test_records(records: list[tuple[Any, Any]], left: Any, separator: str | None) -> None:
    lines = [
        f"{json.dumps(key)}{separator}{json.dumps(value)}" if separator else json.dumps({"key": key, "value": value})
        for key, value in records
    ]
    copy = TopicSource(dump_records(lines)).read(Subject(".", "s"))
    live = [one.number for one in copy.versions if not one.is_deleted]
    deleted = [one.number for one in copy.versions if one.is_deleted]
    assert (live, deleted, copy.config.get("compatibilityLevel"), copy.mode) == left


def _schema_line(**members: str) -> str:
    """A record of a schema. members: of its value, as JSON."""
    value = {"version": "1", "id": "1", "schema": '"{}"', **members}
    text = ",".join(f'"{name}":{member}' for name, member in value.items())
    return f'{{"keytype":"SCHEMA","subject":"s"}}\t{{{text}}}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: it has neither a tab between key and value, nor members key and value"),
        ("{}\t{}", "line 1: its key has no keytype"),
        ('{"keytype":"SCHEMA"}\t[]', "line 1: its value is no object"),
        ('{"keytype":"SCHEMA","subject":"s"}\t{"version":1}', "has no 'id'"),
        (_schema_line(version="1e400"), "is not valid: inf is no integer"),
        (_schema_line(version="[1]"), 'line 1: the value of {"keytype": "SCHEMA", "subject": "s"} is not valid: int()'),
        (_schema_line(references="[1]"), "is not valid: 'int' object is not subscriptable"),
        (_schema_line(references='[{"name":"n","subject":"s","version":1e400}]'), "is not valid: inf is no integer"),
        ('{"keytype":"DELETE_SUBJECT","subject":"s"}\t{"version":"1"}', 'line 1: {"version": "1"} has no version'),
        ('{"keytype":"MODE","subject":"s"}\t{"mode":[1]}', "line 1: [1] is no mode"),
        (f'{{"keytype":"SCHEMA"}}\t{"[" * 100_000}', "line 1: it is not JSON: maximum recursion depth"),
        ("[" * 100_000, "line 1: it has neither"),
    ],
)
def test_records_of_something_else(line: str, message: str) -> None:
    with pytest.raises(InvalidRecord) as refused:
        TopicSource(dump_records([line]))
    assert message in str(refused.value)


def copied(name: str, *references: tuple[str, int] | None) -> SubjectCopy:
    """A subject with a version for each reference; None is a version without one."""
    versions = [
        VersionCopy(number, number, "AVRO", "", (NamedReference("r", *reference),) if reference else ())
        for number, reference in enumerate(references, 1)
    ]
    return SubjectCopy(Subject(".", name), tuple(versions))


# CSR-1003: subjects, and the waves in which they are written, with the numbers of their versions.
ORDERS = [
    ([copied("a"), copied("b")], [["a", "b"]]),
    ([copied("a", ("b", 1)), copied("b", None)], [["b1"], ["a1"]]),
    ([copied("a", ("b", 1), None), copied("b", ("c", 1)), copied("c", None)], [["c1"], ["b1"], ["a12"]]),
    ([copied("a", None, ("a", 1))], [["a1"], ["a2"]]),
    ([copied("a", None, ("b", 1)), copied("b", ("a", 1))], [["a1"], ["b1"], ["a2"]]),
    ([copied("a", ("missing", 1))], [["a1"]]),
    ([copied("a", ("b", 1)), copied("b", ("a", 1))], [["a1", "b1"]]),
]


@pytest.mark.parametrize(("copies", "waves"), ORDERS)
def test_order(copies: list[SubjectCopy], waves: list[list[str]]) -> None:
    assert [
        [part.subject.name + "".join(str(one.number) for one in part.versions) for part in wave]
        for wave in write_waves(copies)
    ] == waves


# CSR-508: copies, of which the last one refers to the latest version of a subject, and the number that this becomes.
LATEST = [
    ([copied("b", None, None), copied("a", None, None, ("b", -1))], 2),
    ([copied("b", None, None), copied("a", None, ("b", -1))], 1),  # the second one of b is not older
    ([copied("b", None, None), copied("a", ("b", -1))], 2),
    ([copied("b", None, None), copied("a", None, None, (":.:b", -1))], 2),
    ([copied("a", None, ("a", -1), None)], 1),
    ([copied("a", ("a", -1))], -1),
    ([copied("b", None), copied("a", None, (":.c:b", -1))], -1),
]


@pytest.mark.parametrize(("copies", "number"), LATEST)
def test_references_to_the_latest_version(copies: list[SubjectCopy], number: int) -> None:
    [numbered] = numbered_copies({copy.subject: copy for copy in copies})
    assert [one.version for version in numbered.versions for one in version.references] == [number]


def test_references_to_the_latest_version_leave_out_deleted_ones() -> None:
    first, second = copied("b", None, None).versions
    copies = [SubjectCopy(Subject(".", "b"), (first, replace(second, is_deleted=True))), copied("a", ("b", -1))]
    [numbered] = numbered_copies({copy.subject: copy for copy in copies})
    assert numbered.versions[0].references[0].version == 1

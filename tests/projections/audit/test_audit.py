"""The audit trail and the comparison of moments, over hand-made logs on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from annals.projections.audit import registry_diff, trail
from annals.projections.audit.entity_diff import ABSENT, AttributeDiff, diff_values
from annals.projections.audit.trail import LogRange
from tests.support.registries.recorded import Registry

Json = Any


@pytest.fixture
def grown(registry: Registry) -> Registry:
    """Positions 1 to 3, 4 to 5, 6 (a deletion), 7; `/dirs/a-b` sorts between `/dirs/a` and what is below it."""
    registry.record(("/dirs/a", {"n": 1}), ("/dirs/a-b", {"n": 1}), ("/dirs/a/files/f", {"n": 1}))
    registry.record(("/dirs/a", {"n": 2}), ("/dirs/a/files/f", {"n": 2}))
    registry.record(("/dirs/a/files/f", None))
    registry.record(("/dirs/A/files/F", {"n": 3}))
    return registry


def tree_changes(registry: Registry, before: int, after: int, xid: str) -> list[tuple[str, str]]:
    with registry.readers.view() as view:
        return [(each.xid, each.change) for each in view.diff(before, after).tree_differences(xid)]


@pytest.mark.parametrize(
    ("xid", "positions"),
    [
        ("/dirs/a", [1, 3, 4, 5, 6, 7]),
        ("/dirs", [1, 2, 3, 4, 5, 6, 7]),
        ("/dirs/a-b", [2]),
        ("/dirs/a/files", [3, 5, 6, 7]),
    ],
)
def test_a_subtree_is_no_prefix_of_text(grown: Registry, xid: str, positions: list[int]) -> None:
    with grown.readers.view() as view:
        assert list(view.trail.tree_positions(xid, LogRange(0, 7))) == positions
        assert list(view.trail.tree_positions(xid, LogRange(0, 7, backwards=True))) == positions[::-1]
        part = LogRange(2, 5)
        assert list(view.trail.tree_positions(xid, part)) == [at for at in positions if 2 < at <= 5]


def test_revisions_know_the_one_before(grown: Registry) -> None:
    with grown.readers.view() as view:
        rows = list(view.trail.revisions([7, 3, 5], before=True))
    assert [(row.position, row.previous_event and row.previous_event.attributes) for row in rows] == [
        (7, {}),
        (3, None),
        (5, {"n": 1}),
    ]
    assert [row.interaction.last for row in rows] == [7, 3, 5]


@pytest.mark.parametrize(
    ("before", "after", "xid", "expected"),
    [
        (3, 5, "/", [("/dirs/a", "changed"), ("/dirs/a/files/f", "changed")]),
        (3, 7, "/dirs/a", [("/dirs/a", "changed"), ("/dirs/a/files/f", "deleted"), ("/dirs/A/files/F", "created")]),
        (7, 3, "/dirs/a/files", [("/dirs/A/files/F", "deleted"), ("/dirs/a/files/f", "created")]),
        (0, 3, "/dirs/a-b", [("/dirs/a-b", "created")]),
        (5, 5, "/", []),
        (3, 7, "/dirs/a-b", []),
        (0, 7, "/dirs/none", []),
    ],
)
def test_two_positions(grown: Registry, before: int, after: int, xid: str, expected: list[tuple[str, str]]) -> None:
    # ENT-31: another spelling of an id is another entity
    assert tree_changes(grown, before, after, xid) == expected


def test_both_ways_to_find_what_moved_agree(registry: Registry) -> None:
    # the query scans the log for few events among many entities, and the heads for many events of few entities
    many = registry.record(*((f"/dirs/d{number:02}", {"n": 0}) for number in range(40)))
    few = registry.record(("/dirs/d07", {"n": 1}), ("/dirs/d03", None))
    assert tree_changes(registry, many, few, "/dirs") == [("/dirs/d03", "deleted"), ("/dirs/d07", "changed")]
    for number in range(60):
        registry.record(("/dirs/d07", {"n": number + 2}))
    last = registry.record(("/dirs/d01", {"n": 1}), ("/dirs/d03", {"n": 1}))
    changes = [("/dirs/d01", "changed"), ("/dirs/d03", "created"), ("/dirs/d07", "changed")]
    assert tree_changes(registry, few, last, "/dirs") == changes
    assert tree_changes(registry, few, last, "/dirs/d07") == changes[2:]


#: The condition for all entities at or below another, for a caller who may read all of them.
RANGE = "{0} >= ? AND {0} < ?"
PLANS = [
    (
        "a history: the part of the index by stream",
        trail.POSITIONS_OF_STREAM,
        ("/a", 0, 9),
        "log_1 (stream=? AND revision>? AND",
    ),
    (
        "a subtree: the same for its streams",
        trail.POSITIONS_OF_TREE,
        ("/a", "/a0", "/a", "/a/", 0, 9),
        "log_1 (stream>? AND stream<?)",
    ),
    (
        "what moved, by the log: positions in between",
        registry_diff.BY_LOG.format(RANGE.format("replace(stream, '/', '!')")),
        (0, 9, "!", '"'),
        "(rowid>? AND rowid<?)",
    ),
    (
        "what moved, by the heads: the subtree's keys",
        registry_diff.BY_HEAD.format(RANGE.format("h.tree_key")),
        (0, 9, "!", '"', 0),
        "(tree_key>? AND tree_key<?)",
    ),
]


@pytest.mark.parametrize(("statement", "values", "part"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS])
def test_what_did_not_change_is_not_looked_at(
    sqlite_url: str, statement: str, values: tuple[Json, ...], part: str
) -> None:
    with Registry(sqlite_url) as registry, registry.store.engine.connect() as connection:
        plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
    assert any(part in step for step in plan)
    assert not any(step.startswith("SCAN ") and step != "SCAN m" for step in plan)


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": True}, [AttributeDiff("a", 1, True)]),
        ({"a": 1}, {"a": 1.0}, [AttributeDiff("a", 1, 1.0)]),
        ({"a": None}, {}, [AttributeDiff("a", None, ABSENT)]),
        ({}, {"a": {"b": 1}}, [AttributeDiff("a", ABSENT, {"b": 1})]),
        ({"a": {}}, {"a": {"b": 1}}, [AttributeDiff("a.b", ABSENT, 1)]),
        ({"a": {"b": 1}}, {"a": {}}, [AttributeDiff("a.b", 1, ABSENT)]),
        ({"a": {"b": 1}}, {"a": [1]}, [AttributeDiff("a", {"b": 1}, [1])]),
        ({"a": [1, 2]}, {"a": [2, 1]}, [AttributeDiff("a", [1, 2], [2, 1])]),
        (
            {"a": {"b.c": 1, "d e": 1}},
            {"a": {}},
            [AttributeDiff("a['b.c']", 1, ABSENT), AttributeDiff("a['d e']", 1, ABSENT)],
        ),
        ({"b": 1, "a": 1}, {}, [AttributeDiff("a", 1, ABSENT), AttributeDiff("b", 1, ABSENT)]),
    ],
)
def test_what_differs_between_two_images(before: Json, after: Json, values: list[AttributeDiff]) -> None:
    # SER-13: numbers are compared as texts; paths are in dot notation; an array is one value
    found = list(diff_values(before, after))
    assert list(map(repr, found)) == list(map(repr, values))  # as texts, because 1 == True

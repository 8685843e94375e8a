"""Hashes of parts of the tree, for generated logs on both databases: each is the sum over its live entities."""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import update

from annals.commands.store.mapper import after_image
from annals.domain.registry.events import EntityEvent
from annals.domain.values import xid as xids
from annals.projections.audit import tree_hashes
from annals.projections.audit.tree_hashes import EMPTY_PART, KeyRange, TreePart, key_range_of, merge_parts
from annals.projections.entities.rows import COMPRESSED_ATTRIBUTES, compress_attributes
from annals.projections.entities.tables import tables
from annals.projections.entities.view import View
from tests.support.examples import examples
from tests.support.registries.recorded import Registry
from tests.support.registries.requests import delete_all_rows

#: `/dirs/a-b` sorts between `/dirs/a` and what is below it as text, not in the tree; the last two are outside of it.
XIDS = (
    *("/", "/model", "/dirs/a", "/dirs/A", "/dirs/a/files/f", "/dirs/a/files/F.1", "/dirs/a/files/f/versions/1"),
    *("/dirs/a-b", "/dirs/a-b/files/f", "/dirs/c", "/zoos/z", "/subscriptions/s", "/-/l"),
)
PATHS = ("/", "/model", "/dirs", "/dirs/a", "/DIRS/a", "/dirs/a/files", "/dirs/a/files/f", "/dirs/none", "/zo")
#: The interactions of a history: xids with a number as content, None to delete the entity.
HISTORIES = st.lists(st.dictionaries(st.sampled_from(XIDS), st.none() | st.integers(0, 3)), min_size=1, max_size=8)
EXAMPLES = {"sqlite": 40, "postgresql": 10}
UNHURRIED: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def recorded(registry: Registry, history: list[dict[str, int | None]]) -> None:
    """Records a history, except deletions of entities that do not exist, and live ids in another spelling."""
    for interaction in history:
        changes: dict[str, tuple[str, dict[str, Any] | None]] = {}
        for xid, number in interaction.items():
            old = registry.history.alive.get(xids.stream(xid))
            if number is not None and (old is None or old.xid == xid):
                changes[xids.stream(xid)] = (xid, {"n": number})
            elif number is None and old is not None:
                changes[xids.stream(xid)] = (old.xid, None)
        if changes:
            registry.record(*changes.values())


def alive(registry: Registry, position: int) -> list[EntityEvent]:
    """The live entities of the tree at a position, in tree order, from the whole history."""
    found = (event for _, event in registry.history.alive_at(position).values())
    return sorted((e for e in found if not xids.is_outside_tree(e.stream)), key=lambda event: xids.tree_key(event.xid))


def naive(events: list[EntityEvent]) -> TreePart:
    if not events:
        return EMPTY_PART
    total = sum(int.from_bytes(sha256(after_image(event)).digest()) for event in events) % (1 << 256)
    return TreePart(events[0].xid, events[-1].xid, len(events), total.to_bytes(32))


def inside(events: list[EntityEvent], keys: KeyRange) -> list[EntityEvent]:
    return [event for event in events if keys.low <= xids.tree_key(event.xid) < keys.high]


@pytest.mark.generated
def test_each_hash_is_the_sum_over_what_lived(store_url: str) -> None:
    # Each hash covers all live entities, except subscriptions and links; FLAG-80: at any position, not only the last
    kind = store_url.partition(":")[0]

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(HISTORIES, st.integers(1, 6), st.sets(st.sampled_from(XIDS)))
    def run(history: list[dict[str, int | None]], parts: int, places: set[str]) -> None:
        delete_all_rows(store_url)
        with Registry(store_url) as registry:
            recorded(registry, history)
            with registry.readers.view() as view:
                for position in range(len(registry.history.recorded) + 1):
                    check_hashes_are_sums(registry, view, position)
                    check_parts_add_up(view, position, parts, sorted(map(xids.tree_key, places)))

    run()


def check_hashes_are_sums(registry: Registry, view: View, position: int) -> None:
    living = alive(registry, position)
    for path in PATHS:
        keys = key_range_of(path)
        assert view.tree_hashes(position).split_at(keys, ()) == [naive(inside(living, keys))], (position, path)
    if position in registry.history.ends:
        whole = view.tree_hashes(position).split_at(key_range_of("/"), ())[0]
        assert whole.hash == view.log.as_of(str(position), registry.store.clock()).state


def check_parts_add_up(view: View, position: int, parts: int, places: list[str]) -> None:
    for path in PATHS:
        keys, found = key_range_of(path), view.tree_hashes(position)
        whole = found.split_at(keys, ())[0]
        cut = found.split_evenly(keys, parts)
        assert merge_parts(cut) == whole
        assert len(cut) == min(parts, whole.count)
        assert max([part.count for part in cut], default=0) - min([part.count for part in cut], default=0) <= 1
        ends = [xids.tree_key(end) for part in cut for end in (part.first, part.last) if end]
        assert ends == sorted(ends)
        within = sorted({place for place in places if keys.low <= place < keys.high})
        split = found.split_at(keys, within)
        assert merge_parts(split) == whole
        ranges = [KeyRange(*pair) for pair in pairwise([keys.low, *within, keys.high])]
        assert split == [found.split_at(each, ())[0] for each in ranges]


def test_an_image_of_the_past_is_what_is_hashed(registry: Registry) -> None:
    # a tampered row of the history changes the hashes of the positions at which it was current, and no others
    first = registry.record(("/dirs/a", {"n": 1}), ("/dirs/b", {"n": 1}))
    last = registry.record(("/dirs/a", {"n": 2}))
    before = [at_position(registry, position) for position in (first, last)]
    with registry.store.engine.begin() as connection:
        history = tables().history
        changed = update(history).where(history.c.tree_key == "!dirs!a")
        connection.execute(changed.values({COMPRESSED_ATTRIBUTES: compress_attributes('{"n":7}')}))
    after = [at_position(registry, position) for position in (first, last)]
    assert [len(part) for part in before] == [2, 2]
    assert (after[0][0] != before[0][0], after[0][1:], after[1]) == (True, before[0][1:], before[1])


def at_position(registry: Registry, position: int) -> list[TreePart]:
    with registry.readers.view() as view:
        return view.tree_hashes(position).split_evenly(key_range_of("/"), 4)


KEYS = ("!dirs", '!dirs"')
RANGE = "h.tree_key >= ? AND h.tree_key < ?"
PLANS = [
    ("now", tree_hashes.CURRENT_HASHES, KEYS),
    ("how many now", tree_hashes.COUNT_CURRENT, KEYS),
    ("then", tree_hashes.PAST_HASHES, (*KEYS, 3, *KEYS, 3, 3, 3)),
    ("how many then", tree_hashes.COUNT_PAST, (*KEYS, 3, *KEYS, 3, 3, 3)),
]
SEARCHES = {
    "h": "(tree_key>? AND tree_key<?)",
    "e": "(tree_key=? AND since=?)",
    "s": "(tree_key=? AND since<?)",
}


@pytest.mark.parametrize(("statement", "values"), [row[1:] for row in PLANS], ids=[row[0] for row in PLANS])
def test_only_the_range_is_read(sqlite_url: str, statement: str, values: tuple[Any, ...]) -> None:
    # reads the heads of the range and, for each entity that has changed since, one image; no log, no sort
    with Registry(sqlite_url) as registry, registry.store.engine.connect() as connection:
        plan = [
            row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement.format(*[RANGE] * 2)}", values)
        ]
    looks = [step for step in plan if step.startswith(("SEARCH", "SCAN")) and step != "SCAN CONSTANT ROW"]
    for step in looks:
        assert step.startswith("SEARCH") and step.endswith(SEARCHES[step.split()[1]]), plan
    assert {step.split()[1] for step in looks} == ({"h", "e", "s"} if "history" in statement else {"h"})
    assert not any("TEMP B-TREE" in step for step in plan)

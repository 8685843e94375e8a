"""Views of the past: their contents stay the same after later writes, and they read index ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.domain.errors import problems
from annals.domain.filters import EntityFilter, PathScope, Sort, parse_filter, parse_sort
from annals.domain.values.xid import tree_key
from annals.projections.database import drivers
from annals.projections.database.connections import PLANNER_SETTINGS
from annals.projections.database.drivers import Values
from annals.projections.entities.filters.scan import ScannedMembers, ScanSelection
from annals.projections.entities.past_database import PastDatabase
from annals.projections.entities.view import View
from tests.projections.entities.test_filters import BASE, MODEL, entities, filters, tree, with_contents
from tests.support.examples import examples
from tests.support.plans import Explained
from tests.support.registries.recorded import Registry
from tests.support.stores import analyze

TYPES = ("dirs.files", "dirs.notes", "dirs.files.versions", "dirs.notes.versions")
GROUPS, FILES, TIMES = 10, 100, 3


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=entities,
    after=entities,
    asked=st.none() | filters,
    key=st.sampled_from([None, "p", "p=desc", "q", "dirid=desc"]),
    size=st.integers(1, 3),
)
def test_by_reading_equals_by_index(
    registry: Registry, before: dict[Any, Any], after: dict[Any, Any], asked: Any, key: str | None, size: int
) -> None:
    # FLAG-82: a listing by index at a position equals a later listing of the past that reads all rows of then
    try:
        filter = parse_filter(asked, PathScope("dirs"), MODEL) if asked else None
    except problems.BadFilter:
        return
    sort = parse_sort(key, PathScope("dirs"), MODEL) if key else None
    with with_contents(registry, tree(before)) as view:
        position = view.position()
        then = listing(view, filter, sort, size)
    with with_contents(registry, tree(after), keep=True) as view:
        assert listing(view.as_of(position), filter, sort, size) == then


def listing(view: View, filter: EntityFilter | None, sort: Sort | None, size: int) -> list[Any]:
    """The results of all queries of a listing: members with descendants, counts, the first pages from both ends."""
    selection = view.selection("/dirs", filter, BASE)
    members = view.members(selection, "dirs", sort, 0)
    rows = [(row.xid, row.attributes) for row in selection.with_descendants(members.rows(members.page_keys()), TYPES)]
    counts = [selection.count_by_owner(type, selection.state, selection.low, selection.high) for type in TYPES]
    pages = []
    for backwards in (False, True):
        first = list(members.page_keys(None, backwards, size))[:size]
        pages += [first, list(members.page_keys(first[-1], backwards, size))[:size] if first else []]
    alive = [row for xid in ("/dirs/a", "/dirs/A") if (row := view.entity(xid)) and selection.is_selected(row)]
    return [rows, selection.count("dirs"), counts, pages, alive, list(view.subtree("/dirs"))]


def test_each_row_is_found_between_its_changes(registry: Registry) -> None:
    # FLAG-80: a row is found from its event on until the next one; a deleted entity is not found
    ends = [
        registry.record(("/dirs/d", own) if own is not None else ("/dirs/d", None))
        for own in ({"n": 1}, {"n": 2}, None, {"n": 3})
    ]
    registry.record(("/dirs/e", {}))
    with registry.readers.view() as view:
        found = [row and row.attributes for end in [0, *ends] for row in [view.as_of(end).entity("/dirs/d")]]
        assert found == [None, '{"n":1}', '{"n":2}', None, '{"n":3}']
        assert [[row.xid for row in view.as_of(end).subtree("/")] for end in [0, *ends]] == [
            [row.xid for row in [view.as_of(end).entity("/dirs/d")] if row] for end in [0, *ends]
        ]


class AllExplained(Explained):
    """Explains all queries, not only streamed ones."""

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        self.plans.append("; ".join(row[-1] for row in self._db.all(self._explain + sql, values)))
        return []

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        return iter(self.all(sql, values))

    def one(self, sql: str, values: Values = ()) -> Any:
        self.all(sql, values)


@pytest.fixture
def explained(registry: Registry) -> Iterator[AllExplained]:
    """A store most of whose rows are history."""
    for time in range(TIMES):
        for d in range(GROUPS):
            files = ((f"/dirs/d{d}/files/f{f}", {"size": f + time, "meta": {}}) for f in range(FILES))
            registry.record((f"/dirs/d{d}", {"name": f"d{time}"}), *files)
    with registry.store.writing() as tx:
        analyze(tx.connection)
    with registry.store.engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if not sqlite:
            for setting in PLANNER_SETTINGS:
                connection.exec_driver_sql(setting)
        yield AllExplained(drivers.database_of(connection), sqlite)


@pytest.mark.scale
def test_a_past_entity_needs_two_lookups(explained: AllExplained) -> None:
    # FLAG-80: by primary key in both tables; of the history, only the last row is read
    past = PastDatabase(explained, GROUPS * FILES)
    past.entity(tree_key("/dirs/d1"))
    past.entity_with_document(tree_key("/dirs/d1"))
    for plan in explained.plans:
        assert reads_ranges(plan), plan
        assert "entity_history_pkey" in plan or "sqlite_autoindex_entity_history_1 (tree_key=? AND since<?)" in plan


@pytest.mark.scale
def test_past_pages_and_trees_merge_two_ranges(explained: AllExplained) -> None:
    # FLAG-80, PAG-7: both tables are read in the order of keys, without a sort
    past = PastDatabase(explained, GROUPS * FILES)
    for xid, type in (("/dirs", "dirs"), ("/dirs/d7/files", "dirs.files")):
        selection = ScanSelection(past, xid, None)
        list(ScannedMembers(past, selection, type, None, FILES).page_keys(limit=10))
        # PostgreSQL may sort the files, which are few. A page of Groups must not read what is below them.
        assert "entity_history_by_type" in explained.plans[-1] or type != "dirs", explained.plans
        list(selection.rows(selection.state, {type, "dirs.files"}, selection.low, selection.high))
    list(View(past).subtree("/dirs/d7"))
    for plan in explained.plans:
        assert reads_ranges(plan), plan
        assert "TEMP B-TREE" not in plan, plan
    list(selection.by_keys(tree_key(f"/dirs/d7/files/f{n}") for n in range(10)))
    assert reads_ranges(explained.plans[-1]), explained.plans[-1]


def reads_ranges(plan: str) -> bool:
    return not any(words in plan for words in ("SCAN main", "SCAN entity", "Seq Scan on entity"))

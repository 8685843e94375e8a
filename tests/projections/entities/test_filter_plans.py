"""Query plans of filters and sorts: each reads ranges of indexes, and looks single entities up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annals.domain.filters import PathScope, Sort, parse_filter
from annals.domain.values import xid as xids
from annals.projections.entities.filters import by_index
from annals.projections.entities.filters.omitted_entities import OMITTED_KEYS
from annals.projections.entities.filters.pages import CollectionMembers
from annals.projections.entities.filters.selection import Selection
from annals.projections.entities.filters.sql import SqlFragment
from annals.projections.entities.leaves import OMITTED_PATH
from annals.projections.entities.xref import xref_query
from tests.projections.entities.test_filters import MODEL
from tests.support.plans import Explained, explained
from tests.support.registries.recorded import Registry, record_files

pytestmark = pytest.mark.scale

GROUPS, FILES = 20, 100


@pytest.fixture
def large(registry: Registry) -> Iterator[Registry]:
    """Enough entities that scanning them would cost more."""
    record_files(registry, GROUPS, FILES)
    yield registry


def planned(db: Explained, query: SqlFragment) -> str:
    list(db.stream(*query))
    return db.plans[-1]


def reads_ranges(plan: str) -> bool:
    return not any(words in plan for words in ("SCAN a", "SCAN e", "Seq Scan on attribute", "Seq Scan on entity"))


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        (["files.name=n7"], "PRIMARY KEY"),
        (["files.name=n7*"], "PRIMARY KEY"),
        (["files.size>98"], "PRIMARY KEY"),
        (["files.name=n7", "files.size=7"], "PRIMARY KEY"),
        (["files.name=n7", "files.size>6"], "json_each"),  # few candidates, whose JSON decides
        (["files.name=n*", "files.size>6"], "PRIMARY KEY"),
        (["dirid=d7", "files.size=7"], "PRIMARY KEY"),
        (["files.name!=n7"], "entity_by_type"),
    ],
)
def test_filters_read_ranges(large: Registry, asked: list[str], index: str) -> None:
    # FLAG-10 to 16: a filter never reads all entities or all leaves
    filter = parse_filter([asked], PathScope("dirs"), MODEL)
    with explained(large) as db:
        selection = Selection(db, "/dirs", filter)
        for type in ("dirs", "dirs.files"):
            query = selection.keys(selection.state, type, selection.low, selection.high)
            assert query is not None
            plan = planned(db, query)
            assert index in plan or "_pkey" in plan or (index == "json_each" and db.is_postgresql), plan
            assert reads_ranges(plan), plan


def test_a_pattern_in_a_small_group_reads_no_values_of_others(large: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """FLAG-10, PAG-7: its entities are decided themselves, where the index has all values of the registry."""
    monkeypatch.setattr(by_index, "MAX_DECIDED", FILES // 2)
    names = ("x7", "7Y", "none", None, 7)
    large.record(("/dirs/small", {}), *((f"/dirs/small/files/f{n}", {"name": name}) for n, name in enumerate(names)))
    filter = parse_filter([["name=*7*"]], PathScope("dirs.files"), MODEL)
    with explained(large) as db:
        for group, many_leaves, reads_index in (
            ("d7", GROUPS * FILES // 2, True),  # a large Group
            ("small", GROUPS * FILES * 2, True),  # in a small registry
            ("small", GROUPS * FILES // 2, False),
            ("none", GROUPS * FILES // 2, False),
        ):
            monkeypatch.setattr(by_index, "MANY_LEAVES", many_leaves)
            db.plans.clear()
            selection = Selection(db, f"/dirs/{group}/files", filter)
            query = selection.keys(selection.state, "dirs.files", selection.low, selection.high)
            assert query is not None
            planned(db, query)
            assert any("attribute" in plan or "PRIMARY KEY" in plan for plan in db.plans) is reads_index, db.plans
    with large.readers.view() as view:
        for expressions, found in ((["name=*7*"], ["f0", "f1"]), (["name=*7*", "name=*y"], ["f1"])):
            filter = parse_filter([expressions], PathScope("dirs.files"), MODEL)
            selection = view.selection("/dirs/small/files", filter, "http://h")
            rows = selection.rows(selection.state, ("dirs.files",), selection.low, selection.high)
            assert [xids.entity_id(row.xid) for row in rows] == found


@pytest.mark.parametrize("size", [FILES, 1_000_000])
@pytest.mark.parametrize("sort", [None, Sort(("name",)), Sort(("size",), descending=True)])
def test_pages_read_ranges(large: Registry, sort: Sort | None, size: int) -> None:
    # FLAG-50 to 52, PAG-7: neither a page of few nor one of many members reads all entities or all leaves
    with explained(large) as db:
        selection = Selection(db, "/dirs/d7/files", None)
        list(CollectionMembers(db, selection, "dirs.files", sort, size).page_keys(limit=10))
        assert db.plans and all(map(reads_ranges, db.plans)), db.plans
        if size > FILES and sort:
            values = [plan for plan in db.plans if "attribute" in plan or "PRIMARY KEY" in plan]
            assert values and not any("TEMP B-TREE" in plan or "Sort" in plan for plan in values), values


def test_what_is_inlined_in_a_page_is_read_by_ranges_of_one_statement(large: Registry) -> None:
    # FLAG-30, PAG-7: the members of a sorted page are not adjacent; a statement for each would be a round trip for each
    with large.readers.view() as view:
        members = list(view.subtree("/dirs/d7/files", {"dirs.files"}))[::-2]
    with explained(large) as db:
        selection = Selection(db, "/dirs/d7/files", None)
        assert list(selection.with_descendants(members, {"dirs.files.versions"})) == members
        (plan,) = db.plans
        assert "entity_pkey" in plan or "sqlite_autoindex_entity" in plan, plan
        assert reads_ranges(plan), plan


@pytest.mark.parametrize("expression", ["meta.readonly=true", "meta.readonly=false", "name=n7"])
def test_equal_values_come_in_the_order_of_pages(large: Registry, expression: str) -> None:
    # FLAG-10, PAG-7: a page of entities with the same value is read in the order of the index, however many have it
    filter = parse_filter([[expression]], PathScope("dirs.files"), MODEL)
    with explained(large) as db:
        selection = Selection(db, "/dirs/d7/files", filter)
        query = selection.keys(selection.state, "dirs.files", selection.low, selection.high)
        assert query is not None
        plan = planned(db, query.wrap("SELECT s.key FROM ({}) AS s ORDER BY s.key LIMIT 10"))
        assert "PRIMARY KEY" in plan or "attribute_pkey" in plan, plan
        assert not any(words in plan for words in ("TEMP B-TREE", "Sort")), plan


def test_resources_with_an_xref_are_looked_up_one_by_one(large: Registry) -> None:
    # ENT-130: each list looks for Resources with an xref; a range of entities for each of them would be quadratic
    pointers = ((f"/dirs/d1/files/x{n}", {"meta": {"xref": f"/dirs/d1/files/f{n}"}}) for n in range(FILES))
    large.record(*pointers)
    with explained(large) as db:
        plan = planned(db, xref_query("dirs.files", "!", '"'))
        assert reads_ranges(plan), plan
        if db.is_postgresql:
            assert "entity_by_type" in plan or "Hash Cond" in plan, plan
        else:
            assert "SEARCH e USING INDEX entity_by_type (type=? AND id_key=?)" in plan, plan


def test_what_the_index_omits_is_found_by_its_mark(large: Registry) -> None:
    # FLAG-10, FLAG-51: one index look-up shows that no entity is omitted
    with explained(large) as db:
        plan = planned(db, SqlFragment(OMITTED_KEYS, ("dirs.files", OMITTED_PATH, b"", "", "~")))
        assert "PRIMARY KEY" in plan or "attribute_pkey" in plan, plan
        assert reads_ranges(plan), plan

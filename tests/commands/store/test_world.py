"""SqlWorld returns the same as MemoryWorld, inside the transaction that writes."""

from __future__ import annotations

import gc
import random
import re
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import Connection

from annals.commands.store.database import sql
from annals.commands.store.log import Store
from annals.commands.store.log_end import START_COLUMNS
from annals.commands.store.sql_world import (
    COUNT_MEMBERS,
    HEADS_OF_COLLECTIONS,
    HEADS_OF_SUBTREE,
    HEADS_OF_TYPE,
    XREF_SOURCES,
)
from annals.commands.store.write_transaction import WriteTransaction
from annals.domain.decisions.commands import DeleteEntities, WriteTree
from annals.domain.registry.entities import Entity
from annals.domain.values import xid as xids
from tests.support.registries.memory_world import MemoryWorld
from tests.support.small_decider import decide, delete, write
from tests.support.stores import analyze

NAMES = [f"/dirs/{d}" for d in ("a", "a-b", "B")]
NAMES += [f"{d}/files/{f}" for d in NAMES for f in ("x", "X.1")] + [f"{d}/scans/s" for d in NAMES]
NAMES += [f"{f}/versions/{v}" for f in NAMES if "files" in f for v in ("1", "v2")]
COLLECTIONS = ["/dirs", "/docs", "/dirs/a/files", "/dirs/A/files", "/dirs/a-b/scans", "/dirs/b/files/x/versions"]


def test_both_worlds_agree(store: Store) -> None:
    """TRAP-7: decisions read under the lock exactly what has been written, by the same transaction too."""
    chance, memory = random.Random(7), MemoryWorld()
    for _ in range(6):
        with store.writing() as tx:
            for _ in range(5):
                some = chance.sample(NAMES, 4)
                recase = [name.replace("/a", "/A") if chance.random() < 0.3 else name for name in some]
                # An entity exists only together with its owners, so they are written with it.
                named = {xids.tree_key(name): name for each in recase for name in (*owners(each), each)}
                command = delete(some[0]) if chance.random() < 0.4 else write(*named.values(), number=chance.random())
                context = tx.context()
                recorded = tx.append(decide(command, tx.world, context), context, command)
                memory.extend(event for _, event in recorded.events)
                agree(tx, memory)
    with store.writing() as tx:
        agree(tx, memory)


def test_a_registry_without_an_event_may_have_groups(store: Store, store_url: str) -> None:
    """TRAP-7: that the registry itself was never written says nothing about its Groups."""
    with store.writing() as tx:
        context, command = tx.context(), write("/dirs/a")
        tx.append(decide(command, tx.world, context), context, command)
    other_store = Store(store_url)
    with other_store.writing() as tx:
        assert (tx.world.revision("/"), tx.world.revision("/dirs/a")) == (0, 1)
    other_store.close()


def test_both_worlds_agree_about_pointers(store: Store) -> None:
    """ENT-138: read one by one or together, before and after an xref changes or is deleted in the same transaction."""
    targets, memory = ["/dirs/a/files/x", "/dirs/a/files/none", "/dirs/A/files/x"], MemoryWorld()
    commands: list[WriteTree | DeleteEntities] = [
        write("/dirs/a", "/dirs/b", *targets[:1]),
        write("/dirs/b/files/s", "/dirs/b/files/r", meta={"xref": targets[0]}),
        write("/dirs/b/files/s", meta={"xref": targets[1]}),
        delete("/dirs/b/files/r"),
    ]
    with store.writing() as tx:
        for command in commands:
            tx.world.prefetch_xref_sources(targets[:2])
            assert [tx.world.xref_sources(target) for target in targets] == [
                memory.xref_sources(target) for target in targets
            ]
            context = tx.context()
            recorded = tx.append(decide(command, tx.world, context), context, command)
            memory.extend(event for _, event in recorded.events)
        assert [list(tx.world.xref_sources(target)) for target in targets] == [[], ["/dirs/b/files/s"], []]


def owners(name: str) -> list[str]:
    parts = xids.segments(name)
    return [xids.join(*parts[:end]) for end in range(2, len(parts), 2)]


def agree(tx: WriteTransaction, memory: MemoryWorld) -> None:
    world = tx.world
    world.prefetch(NAMES[::2])
    for name in (*NAMES, "/dirs/none", "/dirs/a/files/X"):
        assert world.get(name) == memory.get(name)
        assert world.revision(name) == memory.revision(name)
    for collection in COLLECTIONS:
        assert world.members(collection) == by_key(memory.members(collection))
    for root in ("/", "/dirs", "/dirs/a", "/dirs/a/files/x"):
        assert list(world.subtree(root)) == list(memory.subtree(root))
    for kind in ("dirs", "dirs.files", "dirs.files.versions", "none"):
        assert list(world.entities_of_type(kind)) == by_key(list(memory.entities_of_type(kind)))


def by_key(entities: Sequence[Entity]) -> list[Entity]:
    return sorted(entities, key=lambda entity: xids.tree_key(entity.xid))


def test_the_registry_is_below_nothing(store: Store) -> None:
    """The registry, its model and its capabilities are no members of its subtree."""
    command = write("/", "/model", "/capabilities", "/dirs/a")
    with store.writing() as tx:
        context = tx.context()
        tx.append(decide(command, tx.world, context), context, command)
        assert [entity.xid for entity in tx.world.subtree("/")] == ["/dirs/a"]


def test_pages_join_without_a_seam(store: Store) -> None:
    names = [f"/dirs/{g}/files/f{number:04}" for g in "ab" for number in range(1200)]
    with store.writing() as tx:
        context = tx.context()
        command = write(*names)
        tx.append(decide(command, tx.world, context), context, command)
        assert [entity.xid for entity in tx.world.subtree("/")] == names
        assert [entity.xid for entity in tx.world.entities_of_type("dirs.files")] == names
        assert [entity.xid for entity in tx.world.members("/dirs/b/files")] == names[1200:]


def test_collections_are_read_together(store: Store) -> None:
    names = [f"/dirs/{g}/files/f{number}" for g in ("a", "b") for number in range(3)]
    collections = [f"/dirs/{g}/files" for g in ("a", "b", "none")]
    with store.writing() as tx:
        context = tx.context()
        command = write(*names)
        tx.append(decide(command, tx.world, context), context, command)
        tx.world.prefetch_members(collections)
        found = [[entity.xid for entity in tx.world.members(collection)] for collection in collections]
        assert found == [names[:3], names[3:], []]
        tx.world.prefetch_members(collections)  # events that are appended afterwards are not missed
        command, context = write("/dirs/none/files/f1"), tx.context()
        tx.append(decide(command, tx.world, context), context, command)
        assert [entity.xid for entity in tx.world.members("/dirs/none/files")] == ["/dirs/none/files/f1"]


#: Each statement with its search on SQLite, and the index on PostgreSQL.
SEARCHES = {
    "type": (
        HEADS_OF_TYPE,
        ("dirs", "!dirs!", '!dirs"', 9),
        "h USING INDEX head_types (type=? AND tree_key>? AND tree_key<?)",
        "head_types",
    ),
    "count": (
        COUNT_MEMBERS,
        ("dirs", "!dirs!", '!dirs"'),
        "head USING INDEX head_types (type=? AND tree_key>? AND tree_key<?)",
        "head_types",
    ),
    "collections": (
        HEADS_OF_COLLECTIONS,
        (["!dirs!b!files", "!dirs!c!files"], "dirs.files"),
        "h USING INDEX head_types (type=? AND tree_key>? AND tree_key<?)",
        "head_types",
    ),
    "subtree": (
        HEADS_OF_SUBTREE,
        ("!dirs!b!files!", '!dirs!b!files"', 9),
        "h USING PRIMARY KEY (tree_key>? AND tree_key<?)",
        "head_pkey",
    ),
}


@pytest.mark.parametrize("is_analyzed", [False, True], ids=["new", "analyzed"])
@pytest.mark.parametrize("name", SEARCHES)
def test_collections_are_found_by_index(store: Store, name: str, is_analyzed: bool) -> None:
    """Reading a collection costs O(its members), not O(the registry), and needs no sort to be in order."""
    statements, parameters, on_sqlite, on_postgresql = SEARCHES[name]
    with store.writing() as tx:
        context = tx.context()
        files = [f"/dirs/a/{type}/f{n}" for type in ("files", "scans") for n in range(2000)]
        others = [f"/dirs/{d}/{type}/f{n}" for d in "bcz" for type in ("files", "scans") for n in range(5)]
        command = write(*(f"/dirs/{d}" for d in "abcz"), *files, *others, *(f"/dirs/z/files/f{n}" for n in range(2000)))
        tx.append(decide(command, tx.world, context), context, command)
    with store.writing() as tx:
        if is_analyzed:
            analyze(tx.connection)
        dialect = tx.connection.dialect.name
        statement = statements[dialect] if isinstance(statements, dict) else str(statements)
        values = tuple(
            sql.list_parameter(tx.connection, value) if isinstance(value, list) else value for value in parameters
        )
        if dialect == "sqlite":
            plan = [row[-1] for row in sql.run(tx.connection, f"EXPLAIN QUERY PLAN {statement}", values)]
            assert f"SEARCH {on_sqlite}" in plan
            assert [step for step in plan if step.startswith("SCAN")] == plan[: "{keys}" in statement]
            assert ("USE TEMP B-TREE FOR ORDER BY" in plan) == ("{keys}" in statement)
        else:
            plan = [row[0] for row in explained(tx.connection, statement, values)]
            [condition] = [step for step in plan if "Index Cond" in step and "tree_key" in step]
            assert condition.count("tree_key") == 2
            # For a collection without descendants, both indexes are as good.
            assert name == "collections" or [step for step in plan if "Index" in step and on_postgresql in step], plan
            pages = sum(map(int, re.findall(r"(?:hit|read)=(\d+)", next(step for step in plan if "Buffers" in step))))
            assert pages < 60, plan


def explained(connection: Connection, statement: str, values: tuple[object, ...]) -> Any:
    """The plan of a prepared statement, which is the same for all values, with the pages that it reads for these."""
    types = {str: "text", int: "bigint", list: "text[]"}
    prepared = sql.native_statement(statement, "postgresql")
    for number in range(1, len(values) + 1):
        prepared = prepared.replace("%s", f"${number}", 1)
    connection.exec_driver_sql(f"PREPARE wanted ({', '.join(types[type(value)] for value in values)}) AS {prepared}")
    given = ", ".join(f"ARRAY{value}" if isinstance(value, list) else repr(value) for value in values)
    return connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS) EXECUTE wanted ({given})")


def test_pointers_are_found_by_index(sqlite_url: str) -> None:
    """Finding the xrefs to some Resources costs O(these xrefs), not O(the registry)."""
    store = Store(sqlite_url)
    store.create()
    with store.engine.connect() as connection:
        statement = XREF_SOURCES.format(among="IN (SELECT value FROM json_each(?))")
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", ('["/dirs/a/files/x"]',)).all()
    assert plan[0][-1] == "SEARCH head USING INDEX head_sources (xref=?)"
    store.close()


def test_whether_there_are_pointers_is_known_without_a_scan(postgres_url: str) -> None:
    """Every transaction runs this query, and a planner without statistics expects a scan to find a pointer at once."""
    store = Store(postgres_url)
    store.create()
    with store.writing() as tx:
        context = tx.context()
        command = write("/dirs/a", *(f"/dirs/a/files/f{number}" for number in range(500)))
        tx.append(decide(command, tx.world, context), context, command)
        plan = tx.connection.exec_driver_sql(f"EXPLAIN SELECT {START_COLUMNS}").scalars().all()
    assert not [step for step in plan if "Seq Scan" in step]
    store.close()


def test_what_another_process_wrote_is_read(store: Store, store_url: str) -> None:
    """A store keeps heads in memory only until another one writes."""
    other = Store(store_url)
    for writer, number in ((store, 1), (other, 2), (store, 3), (store, 4), (other, 5)):
        with writer.writing() as tx:
            entity = tx.world.get("/dirs/a")
            assert (entity.attributes if entity else {"number": 0}) == {"number": number - 1}
            context, command = tx.context(), write("/dirs/a", number=number)
            tx.append(decide(command, tx.world, context), context, command)
    other.close()


def test_what_was_undone_does_not_stay(store: Store) -> None:
    """An undone transaction leaves the heads as they were."""
    with store.writing() as tx:
        context, command = tx.context(), write("/dirs/a", number=1)
        tx.append(decide(command, tx.world, context), context, command)
    with suppress(ZeroDivisionError), store.writing() as tx:
        context, command = tx.context(), write("/dirs/a", number=2)
        tx.append(decide(command, tx.world, context), context, command)
        _ = 1 / 0
    with store.writing() as tx:
        entity = tx.world.get("/dirs/a")
        assert entity is not None and entity.attributes == {"number": 1}


def test_a_transaction_is_freed_at_its_end(store: Store) -> None:
    """Otherwise its memory would wait for the garbage collector, which would have to visit all of it."""
    gc.disable()
    try:
        with store.writing() as tx:
            context, command = tx.context(), write("/dirs/a", number=1)
            tx.append(decide(command, tx.world, context), context, command)
            freed = weakref.ref(tx)
        del tx
        assert freed() is None
    finally:
        gc.enable()

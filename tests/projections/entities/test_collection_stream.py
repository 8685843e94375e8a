"""Collections that are sent as they are stored, read by one statement."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from threading import Event

import pytest

from annals.domain.values.xid import tree_key
from annals.projections.database.connections import connect
from annals.projections.entities.collection_stream import _COLUMNS, _FROM_MEMBERS, _POSITION
from annals.projections.entities.rebuild import rebuild
from tests.projections.entities.test_plans import large
from tests.support.memory import peak_bytes
from tests.support.registries.recorded import Registry

__all__ = ["large"]

Texts = list[tuple[str, int, int]]


@pytest.fixture
def tree(registry: Registry) -> Registry:
    """A Group with two Resources, one of which has a Version; a Resource in a Group `d-1` that does not exist."""
    registry.record(("/", {"registryid": "r"}), ("/model", {}), ("/capabilities", {}))
    ids = ("/dirs/d", "/dirs/d/files/g", "/dirs/d/files/f", "/dirs/d/files/f/versions/1", "/dirs/d-1/files/f")
    registry.record(*((xid, {"name": xid}) for xid in ids))
    return registry


def texts(registry: Registry, collection: str, definitions: tuple[int, int] = (2, 3)) -> Texts | None:
    with registry.readers.stream_collection(collection, definitions) as found:
        if found is None:
            return None
        return [(row[0], row[1], found.position) for row in found.texts]


# Members in tree order, without their descendants, and the position that they reflect
def test_members_as_they_are_stored(tree: Registry) -> None:
    rows = [tree.readers.quick_view().entity(f"/dirs/d/files/{id}") for id in ("f", "g")]
    position = tree.store.log_end().position
    assert texts(tree, "/dirs/d/files") == [(row.attributes, row.meta, position) for row in rows if row]
    (only,) = texts(tree, "/dirs/d/files/f/versions") or []
    assert '"/dirs/d/files/f/versions/1"' in only[0]


@pytest.mark.parametrize(
    "collection",
    ["/dirs/d/files/g/versions", "/dirs/none/files", "/dirs/D/files", "/dirs/d/notes"],
    ids=["no members", "no owner", "another name than the owner's", "no such collection"],
)
def test_the_stream_declines_views(tree: Registry, collection: str) -> None:
    assert texts(tree, collection) is None


def test_the_stream_declines_other_definitions(tree: Registry) -> None:
    assert texts(tree, "/dirs/d/files", (1, 3)) is None and texts(tree, "/dirs/d/files", (2, 1)) is None
    tree.record(("/capabilities", {"x": 1}))
    assert texts(tree, "/dirs/d/files") is None
    assert texts(tree, "/dirs/d/files", (2, tree.store.log_end().position))


# ENT-133: a Resource with an xref has the attributes of its target, which are not in its row
def test_the_stream_declines_xrefs(tree: Registry) -> None:
    tree.record(("/dirs/d/files/h", {"meta": {"xref": "/dirs/d/files/f"}}))
    assert texts(tree, "/dirs/d/files") is None
    assert texts(tree, "/dirs/d-1/files") is None  # its Group does not exist
    assert texts(tree, "/dirs/d/files/f/versions")
    tree.record(("/dirs/d/files/h", None))
    assert texts(tree, "/dirs/d/files")


def test_a_connection_whose_rows_were_left_is_not_used_again(registry: Registry) -> None:
    registry.record(("/", {"registryid": "r"}), ("/model", {}), ("/capabilities", {}))
    registry.record(*((xid, {"name": "n" * 500}) for xid in ("/dirs/d", *(f"/dirs/d/files/f{n}" for n in range(5000)))))
    for taken in (0, 1, 1000):
        with registry.readers.stream_collection("/dirs/d/files", (2, 3)) as found:
            assert found and len(list(islice(found.texts, taken))) == taken
        assert len(texts(registry, "/dirs/d/files") or ()) == 5000
        with registry.readers.view() as view:
            assert view.entity("/dirs/d")


@pytest.mark.scale
def test_a_collection_streams(registry: Registry) -> None:
    registry.record(("/", {"registryid": "r"}), ("/model", {}), ("/capabilities", {}))
    members = (f"/dirs/d/files/f{n}" for n in range(20_000))
    registry.record(("/dirs/d", {"name": "d"}), *((xid, {"name": "n" * 500}) for xid in members))
    gc.collect()

    def read() -> None:
        with registry.readers.stream_collection("/dirs/d/files", (2, 3)) as found:
            assert found and sum(1 for _ in found.texts) == 20_000

    assert peak_bytes(read) < 3_000_000


# Each statement has a transaction of its own, so it never sees tables that a rebuild swaps in without their rows.
def test_lists_stay_whole_during_rebuilds(tree: Registry) -> None:
    expected, done = texts(tree, "/dirs/d/files"), Event()

    reads = [0, 0]

    def read(number: int) -> None:
        while not done.is_set():
            assert texts(tree, "/dirs/d/files") == expected
            reads[number] += 1

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read, number) for number in range(2)]
        try:
            rebuilds = 0
            while rebuilds < 10 or (min(reads) <= 10 and not any(reader.done() for reader in readers)):
                rebuild(tree.store)
                rebuilds += 1
        finally:
            done.set()
        for reader in readers:
            reader.result()


# A list takes its snapshot after its locks, so a list that waits for a swap sees the rows of the new table. Readers on
# SQLite do not wait for writers.
def test_a_list_that_waits_for_a_swap_is_whole(postgres_url: str) -> None:
    with Registry(postgres_url) as registry, ThreadPoolExecutor(1) as pool:
        registry.record(*((xid, {"name": xid}) for xid in ("/model", "/capabilities", "/dirs/d", "/dirs/d/files/f")))
        expected = texts(registry, "/dirs/d/files", (1, 2))
        assert expected
        with registry.store.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE other (LIKE entity INCLUDING ALL)")
            connection.exec_driver_sql("INSERT INTO other SELECT * FROM entity")
            connection.exec_driver_sql("DROP TABLE entity")
            connection.exec_driver_sql("ALTER TABLE other RENAME TO entity")
            waiting = pool.submit(texts, registry, "/dirs/d/files", (1, 2))
            time.sleep(0.5)
            assert not waiting.done()
        assert waiting.result(60) == expected


@pytest.mark.scale
def test_the_statement_reads_one_range_of_an_index(large: Registry) -> None:
    key_range = ("d7!", 'd7"')
    values = ("dirs.files", *key_range, 1, 1, tree_key("/dirs/d7"), "/dirs/d7", "dirs.files", "meta.xref", *key_range)
    sqlite = large.url.startswith("sqlite")
    with closing(connect(large.url)) as reader:
        if sqlite:
            rows = reader.all(f"EXPLAIN QUERY PLAN SELECT {_COLUMNS} {_FROM_MEMBERS}", values)
        else:  # the plan for any values, with the settings of readers
            with reader.stream_at(_POSITION, _COLUMNS, _FROM_MEMBERS, values) as (position, listed):
                assert (position, list(listed)) == (None, [])
            literals = ", ".join(f"'{value}'" for value in values)
            rows = reader.all(f"EXPLAIN EXECUTE annals_0 ({literals})")
    found = "; ".join(row[-1] for row in rows)
    assert "entity_by_type" in found and ("attribute USING PRIMARY KEY" in found or "attribute_pkey" in found)
    assert sqlite or "$8" in found  # planned once, not for these values
    assert not any(word in found.lower() for word in ("scan entity", "scan attribute", "seq scan", "b-tree", "sort"))

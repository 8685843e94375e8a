"""Stores of older programs: each upgrade step on such a store, and the compression that takes longer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import sha256
from typing import Any

import pytest
import zstandard
from sqlalchemy import inspect

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.compression.log_compression import compress_documents, compress_log
from annals.commands.store.database import tables
from annals.commands.store.database.migrations import PLAIN_DOCUMENTS_AFTER, PLAIN_UNTIL, STEPS, UnusableSchema, upgrade
from annals.commands.store.database.tables import SCHEMA
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.commands import WriteMethod, WriteTree
from tests.support.old_stores import CHAINS, EVENTS, OLD_SCHEMAS, write_old_store
from tests.support.segment_logs import stored_documents


@pytest.fixture(params=OLD_SCHEMAS)
def schema(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old(store_url: str, schema: str) -> Iterator[Store]:
    """The store of an older program, opened but not upgraded."""
    write_old_store(store_url, schema)
    with closing(Store(store_url)) as store:
        yield store


def settings(store: Store) -> dict[str, str]:
    return dict(query(store, "SELECT key, value FROM store"))


def states(store: Store) -> list[bytes]:
    return column(store, "SELECT state FROM log ORDER BY position")


def column(store: Store, statement: str) -> list[bytes]:
    return [bytes(value) for (value,) in query(store, statement)]


def query(store: Store, statement: str) -> list[Any]:
    with store.engine.connect() as connection:
        return list(connection.exec_driver_sql(statement).all())


def write(store: Store, name: str) -> None:
    [outcome] = handle([PendingCommand(WriteTree("/dirs/d1", {"name": name}, WriteMethod.PATCH))], store, [])
    assert not isinstance(outcome, Exception), outcome


def is_frame(state: bytes) -> bool:
    return state.startswith(zstandard.FRAME_HEADER)


def test_the_steps_lead_to_the_schema_of_today() -> None:
    """Each store that can be upgraded has a dump in the tests."""
    assert [step.schema for step in STEPS] == [str(int(STEPS[0].schema) + index) for index in range(len(STEPS))]
    assert STEPS[-1].schema == SCHEMA
    assert [str(int(step.schema) - 1) for step in STEPS] == [*OLD_SCHEMAS]


def test_an_old_store_is_upgraded_with_its_history(old: Store, schema: str) -> None:
    before = states(old)
    assert [step.schema for step in old.create()] == [step.schema for step in STEPS if step.schema > schema]
    assert settings(old)["schema"] == SCHEMA
    assert old.log_end().chain.hex() == CHAINS[schema]
    assert states(old) == before  # a step takes no longer for a large store
    assert len(old.events(0, 100)) == EVENTS
    assert list(verify_log(old)) == []
    write(old, "new")
    assert list(verify_log(old)) == []
    assert old.create() == []


def test_an_upgraded_store_has_the_tables_of_a_new_one(old: Store) -> None:
    old.create()
    found = inspect(old.engine)
    for table in tables.METADATA.sorted_tables:
        assert {column["name"] for column in found.get_columns(table.name)} == {*table.columns.keys()}
        assert {index["name"] for index in found.get_indexes(table.name) if not index.get("duplicates_constraint")} == {
            index.name for index in table.indexes
        }
    with old.writing() as tx:
        assert [entity.xid for entity in tx.world.entities_of_type("dirs")] == ["/dirs/d1", "/dirs/d2"]


def test_a_step_and_its_record_are_one(old: Store, schema: str) -> None:
    """An interruption leaves the store as it was, and running a step again changes nothing."""
    before = settings(old)
    with pytest.raises(ZeroDivisionError), old.engine.begin() as connection:
        upgrade(connection)
        raise ZeroDivisionError
    assert settings(old) == before
    old.create()
    upgraded = settings(old)
    with old.engine.begin() as connection:
        for step in STEPS:
            step.run(connection)
    assert settings(old) == upgraded
    assert list(verify_log(old)) == []


def test_old_events_are_compressed(old: Store, schema: str) -> None:
    old.create()
    write(old, "after the upgrade")
    events, plain = old.events(0, 100), states(old)
    reached = list[tuple[int, int]]()
    report = compress_log(old, lambda done, total: reached.append((done, total)), batch=5)
    compressed = states(old)
    assert all(map(is_frame, compressed))
    assert compressed[EVENTS:] == plain[EVENTS:]
    assert report == (EVENTS, sum(map(len, plain[:EVENTS])), sum(map(len, compressed[:EVENTS])))
    assert report.after * 5 < report.before
    assert reached == [(5, EVENTS), (10, EVENTS), (15, EVENTS), (EVENTS, EVENTS)]
    assert old.events(0, 100) == events
    assert list(verify_log(old)) == []
    assert PLAIN_UNTIL not in settings(old)
    assert compress_log(old) == (0, 0, 0)


def test_an_interrupted_compression_continues(old: Store) -> None:
    old.create()

    def interrupt(done: int, total: int) -> None:
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compress_log(old, interrupt, batch=4)
    assert settings(old)[PLAIN_UNTIL] == str(EVENTS - 8)
    assert [is_frame(state) for state in states(old)] == [False] * (EVENTS - 8) + [True] * 8
    assert list(verify_log(old)) == []
    assert compress_log(old).compressed == EVENTS - 8
    assert all(map(is_frame, states(old)))


def add_documents(store: Store, *contents: bytes) -> None:
    """Stores documents as older programs did."""
    with store.engine.begin() as connection:
        rows = [{"sha256": sha256(content).hexdigest(), "bytes": content} for content in contents]
        connection.execute(tables.document.insert(), rows)


def test_old_documents_are_compressed(old: Store) -> None:
    """Documents of any content are compressed; an interrupted run continues where it stopped."""
    frames = [zstandard.compress(b"a" * size) for size in (9, 99)]
    contents = [*frames, *(b"%d" % number * 2000 for number in range(7)), zstandard.FRAME_HEADER * 999]
    add_documents(old, *contents)
    old.create()
    expected = {sha256(content).hexdigest(): content for content in contents}
    assert expected.items() <= stored_documents(old.engine).items()
    reached = list[tuple[int, int]]()

    def interrupt(done: int, total: int) -> None:
        reached.append((done, total))
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compress_documents(old, interrupt, batch=3)
    assert reached == [(3, 8), (6, 8)]
    assert settings(old)[PLAIN_DOCUMENTS_AFTER] == sorted(key for key in expected if len(expected[key]) > 1024)[5]
    report = compress_documents(old)
    assert (report.compressed, report.before > report.after * 9) == (2, True)
    assert PLAIN_DOCUMENTS_AFTER not in settings(old)
    assert compress_documents(old) == (0, 0, 0)
    assert expected.items() <= stored_documents(old.engine).items()
    assert {len(content) for content in column(old, "SELECT bytes FROM document")} < set(range(1000))
    assert list(verify_log(old)) == []


def test_a_transaction_reads_bounded_bytes(old: Store) -> None:
    """Large states and documents are read fewer at a time than small ones; one that exceeds the limit is read alone."""
    add_documents(old, *(b"%d" % number * 2000 for number in range(5)))
    old.create()
    sizes, reached = list(map(len, states(old))), list[int]()
    assert compress_log(old, lambda done, total: reached.append(done), max_bytes=min(sizes)).compressed == EVENTS
    assert reached == list(range(1, EVENTS + 1))
    reached.clear()
    documents = compress_documents(old, lambda done, total: reached.append(done), max_bytes=4000)
    assert (documents.compressed, reached) == (5, [2, 4, 5])
    assert all(map(is_frame, states(old)))
    assert list(verify_log(old)) == []


def test_a_damaged_document_stays_as_it_is(old: Store) -> None:
    old.create()
    damaged = zstandard.FRAME_HEADER + b"damaged" * 999
    with old.engine.begin() as connection:
        connection.execute(tables.document.update().values(bytes=damaged))
    found = list(verify_log(old))
    assert compress_documents(old) == (0, 0, 0)
    assert set(column(old, "SELECT bytes FROM document")) == {damaged}
    assert list(verify_log(old)) == found != []


def test_several_share_the_work_with_writers(old: Store, store_url: str) -> None:
    old.create()

    def run(number: int) -> int:
        with closing(Store(store_url)) as store:
            if number % 2:
                write(store, f"written by {number}")
                return 0
            return compress_log(store, batch=1).compressed

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(run, range(6))) == EVENTS
    assert all(map(is_frame, states(old)))
    assert list(verify_log(old)) == []


def test_a_damaged_event_stays_as_it_is(old: Store) -> None:
    """A verification finds the damage before and after."""
    old.create()
    damaged = zstandard.FRAME_HEADER + b"damaged" * 99
    with old.engine.begin() as connection:
        marks = "?" if connection.dialect.name == "sqlite" else "%s"
        connection.exec_driver_sql(f"UPDATE log SET state = {marks} WHERE position = 9", (damaged,))
    found = list(verify_log(old))
    assert compress_log(old).compressed == EVENTS - 1
    assert states(old)[8] == damaged
    assert list(verify_log(old)) == found != []


@pytest.mark.parametrize(
    ("other", "said"), [("99", "a newer program wrote the store"), ("1", "no steps lead"), ("x", "no steps lead")]
)
def test_a_store_of_another_schema_is_refused(store: Store, other: str, said: str) -> None:
    """The store is not changed; not even a table is added."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE secret")
        connection.exec_driver_sql(f"UPDATE store SET value = '{other}' WHERE key = 'schema'")
    with pytest.raises(UnusableSchema, match=said):
        store.create()
    with pytest.raises(UnusableSchema, match=said):
        store.require_readable()
    assert settings(store)["schema"] == other
    assert "secret" not in inspect(store.engine).get_table_names()


def test_a_log_with_the_same_tables_is_readable_without_an_upgrade(old: Store, schema: str) -> None:
    """A backup can be verified as it is."""
    if schema == "2":
        with pytest.raises(UnusableSchema, match="annals upgrade"):
            old.require_readable()
        return
    old.require_readable()
    assert list(verify_log(old)) == []
    assert settings(old)["schema"] == schema

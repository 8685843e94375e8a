"""Reads stream rows and never fetch a whole result, in whatever state a connection is; writes keep their order."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pytest
from sqlalchemy import text

from annals.commands.store.database import sql
from annals.commands.store.database.engine import open_engine
from annals.commands.store.log import Store
from annals.projections.database import drivers
from annals.projections.database.connections import connect
from annals.projections.database.drivers import CHUNK, MIN_COPY_ROWS, ROWS_PER_INSERT
from annals.projections.entities.tables import tables

MANY = 10 * CHUNK
#: The number of open cursors of streams: zero if a result was fetched whole.
OPEN = "SELECT count(*) FROM pg_cursors WHERE name LIKE 'stream%'"


@pytest.mark.parametrize("begun", [False, True], ids=["before any statement", "after one"])
def test_a_stream_of_a_transaction_is_never_fetched_whole(postgres_url: str, begun: bool) -> None:
    # the memory of a rebuild, an export and a verification must not grow with the registry
    engine = open_engine(postgres_url)
    with engine.begin() as connection:
        if begun:
            connection.execute(text("SELECT 1"))
        db = drivers.database_of(connection)
        rows = db.stream(f"SELECT g FROM generate_series(1, {MANY}) AS g")
        assert next(iter(rows)) == (1,)
        found: Any = db.one(OPEN)
        assert found == (1,)
        assert sum(1 for _ in rows) == MANY - 1
    engine.dispose()


def test_what_a_reader_has_prepared_outlives_its_transactions(postgres_url: str) -> None:
    # planning a look-up takes longer than running it; the driver forgets all prepared statements at a ROLLBACK
    open_engine(postgres_url).dispose()
    reader = connect(postgres_url)
    prepared: list[Any] = []
    for _ in range(3):
        with reader.snapshot(()) as (one,):
            assert one == 1
            with reader.stream_at("SELECT 4", "?::bigint + ?::bigint", "", (1, 2)) as (value, rows):
                assert (value, [row[0] for row in rows]) == (4, [3])
            assert reader.one("SELECT ?::bigint", (5,)) == (5,)
            prepared.append(reader.all("SELECT name, prepare_time FROM pg_prepared_statements ORDER BY name"))
    assert len(prepared[0]) == 3  # one of them is the last query itself
    assert prepared == [prepared[0]] * 3
    reader.close()


def test_a_reader_whose_transaction_failed_is_not_used_again(postgres_url: str) -> None:
    open_engine(postgres_url).dispose()
    reader = connect(postgres_url)
    with pytest.raises(psycopg.errors.DivisionByZero), reader.snapshot(()):
        reader.one("SELECT 1 / ?::bigint", (0,))
    assert not reader.is_open


# the first rows arrive before the one that fails
def test_a_stream_that_fails_midway_raises(postgres_url: str) -> None:
    open_engine(postgres_url).dispose()
    reader = connect(postgres_url)
    sql = "1 / (?::bigint - n)", "FROM generate_series(1, 5000) AS n"
    with pytest.raises(psycopg.errors.DivisionByZero), reader.stream_at("SELECT 1", *sql, (4000,)) as (_, rows):
        assert sum(1 for _ in rows) < 4000
    assert not reader.is_open


def test_a_stream_ended_by_the_server_raises(postgres_url: str) -> None:
    open_engine(postgres_url).dispose()
    reader, other = connect(postgres_url), connect(postgres_url)
    (pid,) = reader.one("SELECT pg_backend_pid()")
    sql = "repeat('x', 1000)", "FROM generate_series(1, ?::bigint)"
    with pytest.raises(psycopg.OperationalError), reader.stream_at("SELECT 1", *sql, (100_000,)) as (_, rows):
        next(rows)
        other.one("SELECT pg_terminate_backend(?::bigint::int)", (pid,))
        assert sum(1 for _ in rows) < 99_999
    assert not reader.is_open
    other.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_stream_that_is_not_read_to_its_end_keeps_no_reader_in_the_past(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """A reader sees each commit, and stays usable, while for example an exception refers to an unfinished stream."""
    url = request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url")
    engine = open_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE counted (n INTEGER)"))
        connection.execute(text("INSERT INTO counted VALUES (1), (2), (3)"))
    reader = connect(url)
    unfinished = []
    for count in (3, 4):
        for _ in range(2):
            with reader.snapshot(()):
                assert reader.one("SELECT count(*) FROM counted") == (count,)
                unfinished.append(reader.stream("SELECT n FROM counted"))
                assert next(unfinished[-1])[0] in (1, 2, 3)
        unfinished.append(reader.stream("SELECT n FROM counted"))
        next(unfinished[-1])
        with engine.begin() as connection:
            connection.execute(text("INSERT INTO counted VALUES (4)"))
        assert reader.one("SELECT count(*) FROM counted") == (count + 1,)
    with reader.snapshot(()):
        unfinished.clear()
        assert reader.one("SELECT count(*) FROM counted") == (5,)
    reader.close()
    engine.dispose()


def test_many_rows_follow_what_was_written_before(store_url: str) -> None:
    """Rows that are sent at once must not overtake earlier statements that are combined and sent later."""
    store = Store(store_url)
    store.create()
    rows = [(number, b"", "a") for number in range(MIN_COPY_ROWS)]
    with store.writing() as transaction:
        connection, attribute = transaction.connection, tables().attribute
        tables().create(connection)
        drivers.database_of(connection).insert(attribute, rows)
        with sql.combining_writes(connection):
            db = drivers.database_of(connection)
            db.delete(attribute, rows[:3])
            db.delete(attribute, rows[3:5])
            db.insert(attribute, [*rows[:5], *((MIN_COPY_ROWS + number, b"", "a") for number in range(MIN_COPY_ROWS))])
        assert db.one("SELECT count(*) FROM attribute")[0] == 2 * MIN_COPY_ROWS
    store.close()


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_INSERT, 2 * ROWS_PER_INSERT + 3])
def test_all_rows_are_inserted(store_url: str, count: int) -> None:
    """On SQLite, one statement inserts many rows."""
    store = Store(store_url)
    store.create()
    rows = [(number, f"{number}".encode(), "a") for number in range(count)]
    statements: list[str] = []
    with store.writing() as transaction:
        tables().create(transaction.connection)
        driver = transaction.connection.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            driver.set_trace_callback(statements.append)
        db = drivers.database_of(transaction.connection)
        db.insert(tables().attribute, rows)
        assert db.all("SELECT path, value, id_key FROM attribute ORDER BY path") == rows
    inserts = sum(statement.startswith("INSERT") for statement in statements)
    assert inserts == (sum(divmod(count, ROWS_PER_INSERT)) if isinstance(driver, sqlite3.Connection) else 0)
    store.close()


def test_rows_are_deleted_by_their_keys(store_url: str) -> None:
    store = Store(store_url)
    store.create()
    with store.writing() as transaction:
        connection = transaction.connection
        db = drivers.database_of(connection)
        tables().create(connection)
        attribute = tables().attribute
        db.insert(
            attribute, [(number, value, key) for number in (1, 2) for value in (b"", b"\0") for key in ("a", "b")]
        )
        db.delete(attribute, [])
        db.delete(attribute, [(1, b"", "a"), (1, b"\0", "b"), (2, b"", "b"), (3, b"", "a")])
        rows = db.all("SELECT path, value, id_key FROM attribute ORDER BY path, value, id_key")
        assert [tuple(row) for row in rows] == [
            (1, b"", "b"), (1, b"\0", "a"), (2, b"", "a"), (2, b"\0", "a"), (2, b"\0", "b"),
        ]  # fmt: skip
    store.close()

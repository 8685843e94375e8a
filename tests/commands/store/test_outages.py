"""Database errors that report an outage, and errors of wrong statements, which do not; all errors are real ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine

from annals.commands.store.database.outages import describe_outage


def _file(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "a.db", timeout=0, isolation_level=None)
    connection.execute("CREATE TABLE IF NOT EXISTS t (a)")
    return connection


def _full(folder: Path) -> None:
    with closing(_file(folder)) as connection:
        connection.execute("PRAGMA max_page_count = 3")
        connection.execute("INSERT INTO t VALUES (zeroblob(99999))")


def _locked(folder: Path) -> None:
    with closing(_file(folder)) as one, closing(_file(folder)) as other:
        one.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")


def _readonly(folder: Path) -> None:
    _file(folder).close()
    with closing(sqlite3.connect(f"file:{folder / 'a.db'}?mode=ro", uri=True)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")


def _nowhere(folder: Path) -> None:
    with create_engine(f"sqlite:///{folder / 'none' / 'a.db'}").connect():
        pass


def _wrong(folder: Path) -> None:
    with closing(_file(folder)) as connection:
        connection.execute("SELECT nothing")


def _damaged(folder: Path) -> None:
    (folder / "a.db").write_bytes(b"no database" * 100)
    _file(folder)


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (_full, "its disk is full"),
        (_locked, "another program holds its lock"),
        (_readonly, "it cannot be written to"),
        (_nowhere, "its file cannot be opened"),
        (_wrong, None),
        (_damaged, "its file is damaged"),
    ],
)
def test_what_sqlite_says(fail: Callable[[Path], None], said: str | None, tmp_path: Path) -> None:
    with pytest.raises(Exception) as raised:
        fail(tmp_path)
    assert describe_outage(raised.value) == said


#: Fails with a code whose cause would need a second session, or a wait.
RAISE = "DO $$ BEGIN RAISE SQLSTATE '{}';END $$"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT pg_terminate_backend(pg_backend_pid())", "it is being stopped or started"),
        ("SET default_transaction_read_only = on; CREATE TABLE t ()", "it cannot be written to"),
        ("SET statement_timeout = 20; SELECT pg_sleep(60)", "it has cancelled a statement"),
        ("SELECT * FROM t", "its tables are missing"),
        ("SET ROLE pg_monitor; SELECT * FROM pg_authid", "it denies access to its tables"),
        (RAISE.format("40P01"), "another transaction conflicts with this one"),
        (RAISE.format("40001"), "another transaction conflicts with this one"),
        (RAISE.format("25P03"), "it has ended a long transaction"),
        (RAISE.format("25P04"), "it has ended a long transaction"),
        ("SELECT nothing", None),
        ("SELECT 1/0", None),
    ],
)
def test_what_postgresql_says(statement: str, said: str | None, postgres_url: str) -> None:
    with pytest.raises(psycopg.Error) as raised, psycopg.connect(postgres_url, autocommit=True) as connection:
        for each in statement.split("; "):
            connection.execute(each.encode())
    assert describe_outage(raised.value) == said


def test_a_server_with_too_many_connections(postgres_server: str) -> None:
    # ERR-1: a refused connection has no SQLSTATE
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE ROLE annals_crowd LOGIN PASSWORD 'x' CONNECTION LIMIT 0")
        try:
            with pytest.raises(psycopg.OperationalError) as raised:
                psycopg.connect(postgres_server, user="annals_crowd", password="x")
        finally:
            connection.execute("DROP ROLE annals_crowd")
    assert describe_outage(raised.value) == "it has too many connections"


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect(host=str(tmp_path), connect_timeout=2)
    assert describe_outage(raised.value) == "it is out of reach"
    assert describe_outage(ValueError()) is None

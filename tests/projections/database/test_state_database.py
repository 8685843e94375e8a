"""Delivery state is written while others write to the same file."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from annals.projections.database import state_database
from annals.projections.database.state_database import StateDatabase
from annals.projections.replication import tables as replication
from annals.projections.subscriptions.state import tables as deliveries
from tests.support.registries.in_process import create


@contextmanager
def busy(path: Path) -> Iterator[list[int]]:
    """Writes to a file at intervals, as another process would; yields the number of writes."""
    writes, over = [0], threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            while not over.is_set():
                connection.execute("BEGIN IMMEDIATE")
                time.sleep(0.1)
                connection.execute("COMMIT")
                writes[0] += 1
                time.sleep(0.01)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield writes
    finally:
        over.set()
        thread.join()


def test_imports_do_not_block_delivery_writes(tmp_path: Path) -> None:
    # SUB-802: cursors are written between imports that follow each other closely
    path = tmp_path / "annals.db"
    store = StateDatabase(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE cursor (position)")
    with busy(path) as writes:
        for number in range(10):
            time.sleep(0.12)
            with store.writing() as db:
                db.run("INSERT INTO cursor VALUES (?)", (number,))
        taken = writes[0]
    store.close()
    assert taken <= 30


def test_patience_has_an_end(tmp_path: Path) -> None:
    # SUB-805: a heartbeat that cannot be written in time is an error
    path = tmp_path / "annals.db"
    store = StateDatabase(f"sqlite:///{path}", lock_timeout=0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(sqlite3.OperationalError, match="locked"), store.writing():
            pass
        assert 0.2 <= time.monotonic() - began < 5
        connection.execute("COMMIT")
    with store.writing():
        pass
    store.close()


@pytest.mark.parametrize("mode", ["reading", "writing"])
def test_a_connection_that_the_server_has_closed(postgres_url: str, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    # SUB-802: the next use opens another one, without an error, as after a restart of the server
    monkeypatch.setattr(state_database, "_TRUSTED_SECONDS", 0.0)
    with closing(StateDatabase(postgres_url)) as store, closing(StateDatabase(postgres_url)) as other:
        with store.reading() as db:
            (pid,) = db.one("SELECT pg_backend_pid()")
        with other.reading() as db:
            assert db.one("SELECT pg_terminate_backend(?)", (pid,)) == (True,)
            while db.one("SELECT 1 FROM pg_stat_activity WHERE pid = ?", (pid,)):
                time.sleep(0.01)
        with getattr(store, mode)() as db:
            assert db.one("SELECT pg_backend_pid()") != (pid,)


FORMER: Final = (
    "CREATE TABLE delivery_wish (subscription TEXT, name TEXT, value TEXT, PRIMARY KEY (subscription, name))",
    "INSERT INTO delivery_wish VALUES ('s', 'consent', 'x')",
    "CREATE TABLE delivery_pending (subscription TEXT, lane BIGINT, sequence BIGINT, key TEXT, attempts BIGINT, "
    "first FLOAT, next FLOAT, PRIMARY KEY (subscription, lane, sequence))",
    "INSERT INTO delivery_pending VALUES ('s', 1, 2, 'k', 0, NULL, 0)",
    "CREATE TABLE replication_heard (link TEXT, subject TEXT, PRIMARY KEY (link, subject))",
    "INSERT INTO replication_heard VALUES ('l', '/dirs/d')",
)


def test_tables_of_an_earlier_release_get_their_new_names(store_url: str) -> None:
    # What they have stays, and a second start changes nothing.
    create(store_url)
    with closing(StateDatabase(store_url)) as store:
        with store.writing() as db:
            for statement in FORMER:
                db.run(statement)
        for _ in range(2):
            for metadata in (deliveries.METADATA, replication.METADATA):
                state_database.create_tables(store_url, metadata)
            with store.reading() as db:
                assert db.all("SELECT subscription, name, value FROM delivery_request") == [("s", "consent", "x")]
                assert db.all("SELECT subscription, queue, sequence FROM delivery_pending") == [("s", 1, 2)]
                assert db.all("SELECT link, subject FROM replication_subject") == [("l", "/dirs/d")]

from __future__ import annotations

import threading
import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.database import engine
from annals.commands.store.database.checkpoints import AUTOCHECKPOINT_PAGES, KEPT_LOG_BYTES
from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.database.engine import open_engine
from annals.commands.store.database.outages import CommitUnconfirmed, describe_outage
from annals.commands.store.database.sql import CHUNK, MAX_BLOB_BYTES, insert_batches
from annals.commands.store.log import Store
from annals.domain.decisions.commands import CreateRegistry
from tests.support.polling import until
from tests.support.stores import lose_commits, schema_of, server_of


def settings(store: Store, *statements: str) -> list[object]:
    with store.writing() as tx:
        return [tx.connection.exec_driver_sql(statement).scalar_one() for statement in statements]


def test_commits_are_durable(store: Store) -> None:
    """What was acknowledged survives the loss of power: the database waits for the disk."""
    if store.engine.dialect.name == "sqlite":
        assert settings(store, "PRAGMA journal_mode", "PRAGMA synchronous") == ["wal", 2]
    else:
        expected = ["on", "read committed"]
        assert settings(store, "SHOW synchronous_commit", "SHOW transaction_isolation") == expected


@pytest.mark.parametrize(("configured", "used"), [("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")])
def test_commits_wait_for_standbys_if_the_database_says_so(postgres_url: str, configured: str, used: str) -> None:
    store = Store(postgres_url.replace("=-c", f"=-csynchronous_commit%3D{configured}%20-c"))
    store.create()
    assert settings(store, "SHOW synchronous_commit") == [used]
    store.close()


def test_plans_follow_the_size_of_the_tables(postgres_url: str) -> None:
    """An empty store grows within seconds; a plan that scans its empty tables must not be used after that."""
    store = Store(postgres_url)
    store.create()
    assert settings(store, "SHOW enable_seqscan") == ["off"]
    store.close()


def test_settings_that_fail_are_set_again(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(postgres_url)
    store.create()
    store.close()
    with monkeypatch.context() as patched:
        patched.setattr(engine, "_WRITER_SETTINGS", "SELECT 1 / 0")
        with pytest.raises(driver_errors()):
            settings(store)
    assert settings(store, "SHOW enable_seqscan") == ["off"]
    store.close()


def test_a_command_does_not_wait_for_ever(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen process keeps the write lock. Commands wait for a minute, or as long as the operator has set; what a
    program does for itself, such as the end of a rebuild, waits."""
    begin = engine._BEGIN_WITH_LOCK_TIMEOUT
    assert "'60s'" in begin
    monkeypatch.setattr(engine, "_BEGIN_WITH_LOCK_TIMEOUT", begin.replace("'60s'", "'300ms'"))
    impatient = postgres_url.replace("=-c", "=-clock_timeout%3D100%20-c")
    holder, *others = [Store(url) for url in (postgres_url, postgres_url, impatient)]
    patient = Store(postgres_url)
    holder.create()
    with holder.writing() as tx:
        tx.connection.exec_driver_sql("SELECT 1")
        waiting = threading.Thread(target=lambda: settings(patient, "SELECT 1"))
        waiting.start()
        for other in others:
            [refused] = handle([PendingCommand(CreateRegistry("r", {}))], other, [])
            assert isinstance(refused, Exception)
            assert describe_outage(refused) == "another program holds its lock"
        assert waiting.is_alive()
    waiting.join()
    with holder.writing(limits_wait=True) as tx:  # statements of the transaction itself may take longer
        assert tx.connection.exec_driver_sql("SHOW lock_timeout").scalar_one() == "0"
    for each in (holder, patient, *others):
        each.close()


def test_a_lost_answer_to_a_commit_is_no_refusal(postgres_url: str) -> None:
    """The database may have committed before the connection was lost, so the writer must not say that it has not."""
    store = Store(postgres_url)
    store.create()
    with store.writing() as tx:
        lose_commits(tx.connection)
    with pytest.raises(CommitUnconfirmed) as raised, store.writing() as tx:
        tx.connection.exec_driver_sql("INSERT INTO document VALUES ('x', '')")
    assert describe_outage(raised.value) == str(raised.value)
    with pytest.raises(DBAPIError, match="idle-in-transaction"), store.writing() as tx:  # so it got no COMMIT
        tx.connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 50")
        time.sleep(0.5)
    assert settings(store, "SELECT 1") == [1]
    store.close()


def test_a_commit_that_gives_up_its_standbys_is_unconfirmed(tmp_path: Path) -> None:
    """What was acknowledged survives a failover, if the operator wants commits to wait for a standby. PostgreSQL ends
    such a wait at a cancellation or a timeout, commits, and only warns."""
    with server_of(tmp_path, "wal_level=replica", "max_wal_senders=1") as url, schema_of(url) as schema_url:
        store = Store(schema_url)
        store.create()
        with psycopg.connect(url, autocommit=True) as administrator:

            def wait_for(standby: str) -> None:
                administrator.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'".encode())
                administrator.execute("SELECT pg_reload_conf()")

            def cancel() -> bool:
                waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                return administrator.execute(f"SELECT pg_cancel_backend(pid) {waiting}".encode()).fetchone() is not None

            wait_for("gone")
            until(lambda: settings(store, "SHOW synchronous_standby_names") == ["gone"])  # it commits nothing
            cancelling = threading.Thread(target=until, args=(cancel,))
            cancelling.start()
            try:
                with pytest.raises(CommitUnconfirmed, match="may be lost with the primary"), store.writing() as tx:
                    tx.connection.exec_driver_sql("INSERT INTO document VALUES ('x', '')")
            finally:
                cancelling.join()
                wait_for("")
            until(lambda: settings(store, "SHOW synchronous_standby_names") == [""])
        store.close()


def test_large_values_are_compressed_fast(postgres_url: str) -> None:
    """Other writers wait while a large body is compressed, so the store uses lz4 if the server supports it."""
    store = Store(postgres_url)
    store.create()
    offered = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
    has_lz4, used = settings(store, offered, "SHOW default_toast_compression")
    assert used == ("lz4" if has_lz4 else "pglz")
    store.close()


def test_durability_can_be_given_up(store_url: str) -> None:
    store = Store(store_url, durable=False)
    store.create()
    query = "PRAGMA synchronous" if store.engine.dialect.name == "sqlite" else "SHOW synchronous_commit"
    assert settings(store, query) in ([0], ["off"])
    store.close()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://localhost/annals"])
def test_other_databases_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="a store is"):
        open_engine(url)


def test_a_statement_never_grows_beyond_what_a_database_takes() -> None:
    blob = bytes(MAX_BLOB_BYTES // 2)
    heavy = [("a", blob), ("b", blob), ("c", b"1"), ("d", blob * 3), ("e", blob)]
    assert [[name for name, _ in parcel] for parcel in insert_batches(heavy)] == [["a", "b"], ["c"], ["d"], ["e"]]
    assert [len(parcel) for parcel in insert_batches([("x", b"")] * (CHUNK + 1))] == [CHUNK, 1]


def test_a_large_commit_leaves_no_large_file(tmp_path: Path) -> None:
    """The write-ahead log is truncated when it is used again, not only when the server stops."""
    store = Store(f"sqlite:///{tmp_path}/annals.db")
    store.create()
    log = tmp_path / "annals.db-wal"
    with store.writing() as tx:
        tx.connection.exec_driver_sql(f"INSERT INTO document VALUES ('x', zeroblob({KEPT_LOG_BYTES + (8 << 20)}))")
    assert log.stat().st_size > KEPT_LOG_BYTES

    def is_truncated() -> bool:
        with store.writing() as tx:
            tx.connection.exec_driver_sql("INSERT INTO document VALUES (hex(randomblob(8)), 'small')")
        return log.stat().st_size <= KEPT_LOG_BYTES

    until(is_truncated)
    store.close()


def test_commits_leave_checkpoints_to_another_thread(tmp_path: Path) -> None:
    """A commit writes only the write-ahead log to disk; a thread copies it to the database during the next commands."""
    others = set(threading.enumerate())
    store = Store(f"sqlite:///{tmp_path}/annals.db")
    store.create()
    pages = settings(store, "PRAGMA wal_autocheckpoint")[0]
    assert pages == AUTOCHECKPOINT_PAGES
    until(lambda: (tmp_path / "annals.db").stat().st_size > 8192)
    [thread] = [thread for thread in set(threading.enumerate()) - others if thread.name == "annals-checkpoints"]
    store.close()
    assert not thread.is_alive()

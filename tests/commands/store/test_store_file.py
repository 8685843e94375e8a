"""The file of a SQLite store is removed or replaced while a process has it open."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from annals.commands.store.database.checkpoints import Checkpointer
from annals.commands.store.database.engine import open_engine, require_same_file
from annals.commands.store.database.outages import describe_outage
from annals.commands.store.database.store_file import StoreFile, StoreFileChanged
from annals.commands.store.log import Store
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import CreateRegistry
from annals.domain.decisions.decide import decide
from annals.domain.model.builtin import default_source
from tests.support.polling import until

CHANGED = "the file of the database was removed or replaced; restart the server"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "annals.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    """A store with events whose last ones are only in the write-ahead log."""
    with closing(filled(file)) as store:
        yield store


def filled(file: Path) -> Store:
    store = Store(f"sqlite:///{file}")
    store.create()
    write(store)
    return store


def write(store: Store) -> None:
    with store.writing() as transaction:
        command = CreateRegistry("reg", default_source())
        context = transaction.context(Caller("tester", Role.WRITER))
        transaction.append(decide(command, transaction.world, context), context, command)


def touch(store: Store) -> None:
    """A write transaction that records nothing."""
    with store.writing():
        pass


def replacement(file: Path) -> Path:
    """Another database, of the size of a store."""
    other = file.with_name("other.db")
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        connection.execute("PRAGMA page_size = 8192")
        connection.execute("CREATE TABLE kept (value)")
        connection.executemany("INSERT INTO kept VALUES (zeroblob(8000))", [()] * 100)
    return other


def inspected(file: Path, query: str) -> tuple[str, Any]:
    """Whether a database is intact, and the result of a query, as a program sees it that opens the file afterwards."""
    with closing(sqlite3.connect(file)) as connection:
        [(integrity,)] = connection.execute("PRAGMA integrity_check")
        return integrity, connection.execute(query).fetchone()[0]


def test_writes_to_a_removed_file_are_refused_and_it_is_not_made_again(store: Store, file: Path) -> None:
    file.unlink()
    for _ in range(2):
        with pytest.raises(StoreFileChanged) as raised:
            touch(store)
        assert describe_outage(raised.value) == CHANGED
    with pytest.raises(StoreFileChanged):
        require_same_file(store.engine)
    # a connection is needed beyond those that are open, and another part of the process opens its own
    with pytest.raises(OperationalError) as wrapped, store.engine.connect(), store.engine.connect():
        pass
    assert describe_outage(wrapped.value) == CHANGED
    other_engine = open_engine(f"sqlite:///{file}")
    with pytest.raises(OperationalError, match=CHANGED), other_engine.connect():
        pass
    other_engine.dispose()
    store.close()
    assert not file.exists()


def test_a_replacement_is_neither_written_nor_damaged(store: Store, file: Path) -> None:
    replacement(file).replace(file)
    with pytest.raises(StoreFileChanged):
        touch(store)
    store.close()
    assert inspected(file, "SELECT count(*) FROM kept") == ("ok", 100)


def test_a_file_that_was_moved_away_is_complete(store: Store, file: Path) -> None:
    moved, end = file.with_name("moved.db"), store.log_end().position
    file.rename(moved)
    replacement(file).replace(file)
    with pytest.raises(StoreFileChanged):
        touch(store)
    store.close()
    assert inspected(moved, "SELECT max(position) FROM log") == ("ok", end)
    assert inspected(file, "SELECT count(*) FROM kept") == ("ok", 100)


def test_writes_go_on_when_the_file_is_back(store: Store, file: Path) -> None:
    moved = file.with_name("moved.db")
    file.rename(moved)
    with pytest.raises(StoreFileChanged):
        touch(store)
    moved.rename(file)
    touch(store)
    require_same_file(store.engine)


def test_checkpoints_begin_when_the_file_is_back(store: Store, file: Path) -> None:
    moved, has_begun = file.with_name("moved.db"), Event()

    def connect() -> sqlite3.Connection:
        has_begun.set()
        return sqlite3.connect(file, isolation_level=None)

    checkpointer = Checkpointer(connect, StoreFile(str(file)))
    file.rename(moved)
    checkpointer.request()
    assert not has_begun.wait(0.2), "it would create a file"
    moved.rename(file)
    assert has_begun.wait(60)
    checkpointer.stop()


def test_checkpoints_go_on_after_a_full_disk(
    store: Store, file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # without them, SQLite's log would grow with each commit until the restart
    class FullDisk(sqlite3.Connection):
        attempts = 0

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            FullDisk.attempts += 1
            if FullDisk.attempts < 3:
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(*arguments)

    monkeypatch.setattr("annals.commands.store.database.checkpoints.CHECKPOINT_SECONDS", 0.01)
    checkpointer = Checkpointer(
        lambda: sqlite3.connect(file, check_same_thread=False, factory=FullDisk), StoreFile(str(file))
    )
    checkpointer.request()
    until(lambda: FullDisk.attempts == 3)
    checkpointer.stop()
    assert caplog.messages == ["SQLite's log is not copied to the database, trying again: database or disk is full"]


def test_checkpoints_create_no_file_in_place_of_a_removed_one(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file may be removed after the look at it, and before the connection is opened."""
    has_changed, looked = StoreFile.has_changed, Event()

    def remove_after_look(found: StoreFile) -> bool:
        if current_thread().name != "annals-checkpoints" or looked.is_set():
            return has_changed(found)
        file.unlink()
        looked.set()
        return False

    monkeypatch.setattr(StoreFile, "has_changed", remove_after_look)
    with closing(Store(f"sqlite:///{file}")) as store:
        store.create()
        assert looked.wait(60)
    assert not file.exists()


def test_a_closed_store_allows_another_file(store: Store, file: Path) -> None:
    store.close()
    file.unlink()
    with closing(filled(file)) as other:
        touch(other)


def test_another_store_of_the_process_keeps_the_file(store: Store, file: Path) -> None:
    with closing(Store(f"sqlite:///{file}")) as other:
        touch(other)
    file.unlink()
    with pytest.raises(StoreFileChanged):
        touch(store)


def test_what_changes_the_file_in_place_is_no_other_file(store: Store, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("VACUUM")
        connection.backup(sqlite3.connect(file.with_name("backup.db")))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    touch(store)
    assert inspected(file, "SELECT count(*) FROM store")[0] == "ok"


def test_a_relative_path_and_one_that_is_a_link(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(filled(file)):
        pass
    Path("link.db").symlink_to(file)
    with closing(Store("sqlite:///link.db")) as store:
        touch(store)
        Path("link.db").unlink()
        Path("link.db").symlink_to(replacement(file))
        with pytest.raises(StoreFileChanged):
            touch(store)


def test_postgresql_has_no_file(postgres_url: str) -> None:
    with closing(Store(postgres_url)) as store:
        store.create()
        require_same_file(store.engine)
        touch(store)

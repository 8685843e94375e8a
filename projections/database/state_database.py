"""State next to the log, such as deliveries, links and sessions: the creation of its tables, and a connection."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Inspector, MetaData, Table, inspect, make_url

from annals.commands.store.database.checkpoints import AUTOCHECKPOINT_PAGES, KEPT_LOG_BYTES
from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.database.engine import WRITING, driver_uri, open_engine, postgresql_options, set_session
from annals.commands.store.database.known_log_end import known_log_end
from annals.commands.store.database.store_file import existing_file, require_unchanged
from annals.projections.database.drivers import Database, PostgresDatabase, SqliteDatabase

if TYPE_CHECKING:
    import psycopg

#: What a table or a column was called by an earlier release, in its `info`.
FORMER_NAME: Final = "former_name"
#: Seconds between checks whether a SQLite file is unlocked.
_POLL_SECONDS: Final = 0.002
#: Seconds for which an unused connection is trusted to be open.
_TRUSTED_SECONDS: Final = 1.0
#: The name of the lock is that of earlier releases, whose processes may run beside this one.
_TAKE_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('annals-deliveries'))"


class StateDatabase:
    """One writing connection, for one thread at a time. It opens on demand, and again after a failure.

    Commits do not wait for the disk. After a power loss all tables return to one earlier moment, and the deliveries
    since then are repeated, which at-least-once allows. The log on disk is never behind this state.
    lock_timeout: seconds to wait for other writers of a SQLite file. is_durable: commits do wait for the disk.
    """

    def __init__(self, url: str, lock_timeout: float = 60.0, *, is_durable: bool = False) -> None:
        self._url = make_url(url)
        self._lock_timeout = lock_timeout
        self._is_durable = is_durable
        self._connection: Any = None
        self._used_at = 0.0
        self.is_sqlite = self._url.get_backend_name() == "sqlite"

    @contextmanager
    def writing(self, *, exclusive: bool = False) -> Iterator[Database]:
        """A transaction. exclusive: it excludes other such transactions in all processes.

        Raises: one of `driver_errors()`; the next call then opens a new connection.
        """
        db = self._begin()
        try:
            if exclusive and not self.is_sqlite:
                db.run(_TAKE_LOCK)
            yield db
            self._connection.execute("COMMIT")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """The connection outside of transactions. Raises: as `writing`."""
        try:
            yield self._open()
        except driver_errors():
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection and rolls back what was not committed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _begin(self) -> Database:
        if self.is_sqlite:
            require_unchanged(self._url.database or "")
        db = self._open()
        try:
            if self.is_sqlite:
                self._begin_in_file()
            else:
                self._connection.execute("BEGIN")
        except driver_errors():
            self.close()
            raise
        return db

    def _begin_in_file(self) -> None:
        """Begins a transaction between the writes of others.

        SQLite itself checks only ten times a second whether a file is unlocked. Next to consecutive imports it waited
        seconds that way, and after a crash all deliveries of that time were repeated.
        """
        deadline = time.monotonic() + self._lock_timeout
        self._connection.execute("PRAGMA busy_timeout = 0")
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            time.sleep(_POLL_SECONDS)
        self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._lock_timeout)}")

    def _open(self) -> Database:
        if self._connection is not None and not self.is_sqlite and not self._is_still_open():
            self.close()
        if self._connection is None:
            self._connection = self._connect_file() if self.is_sqlite else self._connect_server()
        self._used_at = time.monotonic()
        return SqliteDatabase(self._connection) if self.is_sqlite else PostgresDatabase(self._connection)

    def _is_still_open(self) -> bool:
        """Whether the server, or a proxy, has not closed the connection since its last use."""
        if time.monotonic() - self._used_at < _TRUSTED_SECONDS:
            return True
        try:
            self._connection.execute("SELECT 1")
        except driver_errors():
            return False
        return True

    def _connect_file(self) -> sqlite3.Connection:
        path = self._url.database or ""
        require_unchanged(path)
        connection = sqlite3.connect(
            existing_file(path), uri=True, isolation_level=None, check_same_thread=False, timeout=self._lock_timeout
        )
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._is_durable else 'NORMAL'}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {KEPT_LOG_BYTES}")
        return connection

    def _connect_server(self) -> psycopg.Connection[Any]:
        import psycopg  # takes long, and a SQLite store does not need it

        connection = psycopg.connect(driver_uri(self._url), autocommit=True, **postgresql_options(self._url))
        known_log_end(self._url).check_new(connection)
        set_session(connection)
        if not self._is_durable:
            connection.execute("SET synchronous_commit = off")
        connection.execute("SET plan_cache_mode = force_custom_plan")
        return connection


def create_tables(url: str, metadata: MetaData) -> None:
    """Creates missing tables in the database of the log, and renames those that have their former names."""
    engine = open_engine(url)
    try:
        with engine.execution_options(**{WRITING: True}).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('annals'))")
            _rename_former(connection, metadata)
            metadata.create_all(connection)
    finally:
        engine.dispose()


def _rename_former(connection: Connection, metadata: MetaData) -> None:
    """Looks at those tables only that had another name, because each start of a process comes here."""
    present = inspect(connection)
    for table in metadata.tables.values():
        former = table.info.get(FORMER_NAME)
        if former and present.has_table(former) and not present.has_table(table.name):
            connection.exec_driver_sql(f"ALTER TABLE {former} RENAME TO {table.name}")
        for column in table.columns:
            former = column.info.get(FORMER_NAME)
            if former and present.has_table(table.name) and former in _column_names(present, table):
                connection.exec_driver_sql(f"ALTER TABLE {table.name} RENAME COLUMN {former} TO {column.name}")


def _column_names(present: Inspector, table: Table) -> list[str]:
    return [column["name"] for column in present.get_columns(table.name)]

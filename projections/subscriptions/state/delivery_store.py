"""Connections for durable state beside the log, and its tables made where there are none."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from sqlalchemy import MetaData, make_url

from commands.store.checkpoints import AUTOCHECKPOINT_PAGES
from commands.store.engine import WRITING, open_engine
from projections.database.drivers import Database, PostgresDatabase, SqliteDatabase
from projections.subscriptions.state import tables

#: What the drivers raise when the database cannot be used now.
DRIVER_ERRORS: Final = (sqlite3.Error, psycopg.Error)
#: Seconds between two looks whether a SQLite file is free.
_LOOK: Final = 0.002
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('annals-deliveries'))"


class DeliveryStore:
    """One connection that writes, for one thread at a time. It opens when it is needed, again after a failure.

    Its commits wait for no disk: after a loss of power the last moments are as they were before, all of them alike, and
    what was delivered in these is delivered once more, which at least once allows. The log is always ahead of them.
    patience: seconds to wait for other writers of a SQLite file.
    """

    def __init__(self, url: str, patience: float = 60.0) -> None:
        self._url = make_url(url)
        self._patience = patience
        self._connection: Any = None
        self.is_sqlite = self._url.get_backend_name() == "sqlite"

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Database]:
        """A transaction. alone: no two of those run at a time, in whatever processes.

        Raises: one of FAILURES; the next call then opens a new connection.
        """
        db = self._begin()
        try:
            if alone and not self.is_sqlite:
                db.run(_LOCK)
            yield db
            self._connection.execute("COMMIT")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """The connection outside of transactions. Raises: as `writing`."""
        try:
            yield self._opened()
        except DRIVER_ERRORS:
            self.close()
            raise

    def close(self) -> None:
        """Gives the connection back; what was not committed is undone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _begin(self) -> Database:
        db = self._opened()
        try:
            if self.is_sqlite:
                self._begin_in_file()
            else:
                self._connection.execute("BEGIN")
        except DRIVER_ERRORS:
            self.close()
            raise
        return db

    def _begin_in_file(self) -> None:
        """Begins between two writes of others.

        SQLite itself looks ten times a second only whether a file is free; beside one import after the other that took
        seconds, and a crash had all of them delivered again.
        """
        until = time.monotonic() + self._patience
        self._connection.execute("PRAGMA busy_timeout = 0")
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                    raise
            time.sleep(_LOOK)
        self._connection.execute(f"PRAGMA busy_timeout = {int(1000 * self._patience)}")

    def _opened(self) -> Database:
        if self._connection is None:
            self._connection = self._file() if self.is_sqlite else self._server()
        return SqliteDatabase(self._connection) if self.is_sqlite else PostgresDatabase(self._connection)

    def _file(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._url.database or "", isolation_level=None, check_same_thread=False, timeout=self._patience
        )
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT_PAGES}")
        return connection

    def _server(self) -> psycopg.Connection[Any]:
        source = self._url.set(drivername="postgresql").render_as_string(hide_password=False)
        connection = psycopg.connect(source, autocommit=True)
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET plan_cache_mode = force_custom_plan")
        return connection


def create_tables(url: str, metadata: MetaData = tables.METADATA) -> None:
    """Makes those of some tables that are not there yet, beside those of the log."""
    engine = open_engine(url)
    try:
        with engine.execution_options(**{WRITING: True}).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('annals'))")
            metadata.create_all(connection)
    finally:
        engine.dispose()

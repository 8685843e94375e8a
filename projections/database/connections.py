"""Read-only connections of the drivers, for readers that wait for nobody."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import chain
from typing import Any, Final, Protocol
from urllib.parse import quote

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import URL, make_url

from projections.database.drivers import Database, PostgresDatabase, SqliteDatabase, Values
from projections.database.prepared_statements import PreparedStatements

#: Bytes of a SQLite file that readers map into memory: hot pages are read without a system call.
MMAP_BYTES: Final = 1 << 30
#: Kilobytes of other pages that each keeps, such as those that the writer has not put back into the file yet. A list of
#: a thousand Resources goes through more than the usual half of it, and would read all of them anew.
CACHE_KILOBYTES: Final = 4096
#: What PostgreSQL is told about planning queries.
PLANNER_SETTINGS: Final = (
    # Every query here goes by a key; a prepared plan from the days of a small table would go on scanning a grown one.
    "SET enable_seqscan = off",
    # Most want rows in the order of an index, a few at a time; a bitmap collects all of them and then sorts.
    "SET enable_bitmapscan = off",
    # A plan for the values at hand is made each time, and where statistics say next to nothing of them, it may be one
    # that goes through all leaves of a collection.
    "SET plan_cache_mode = force_generic_plan",
    # Compiling one of them takes ten times as long as running it.
    "SET jit = off",
)


class ReadConnection(Database, Protocol):
    """A connection of one reader."""

    @property
    def usable(self) -> bool:
        """Whether it is open still."""

    def snapshot(self, tables: Sequence[str], first: str = "SELECT 1") -> AbstractContextManager[Any]:
        """A read transaction that sees one moment, and the row of a `first` query, which costs no round trip.

        tables: those that a rebuild may swap meanwhile.
        """

    def stream_at(
        self, moment: str, columns: str, rest: str, values: Values = ()
    ) -> AbstractContextManager[tuple[Any, Iterator[Any]]]:
        """What a query for one value gives, and the rows of another at the same moment, a few at a time.

        The database goes on reading meanwhile. moment: without parameters. columns, rest: the other query in two parts,
        without its SELECT; its rows have these columns first. values: texts and integers. The value is None where there
        are no rows. Nothing else may be asked in the block; afterwards the connection may be of no more use, where not
        all rows were taken.
        """

    def close(self) -> None:
        """Closes it, from any thread."""


def connect(url: str) -> ReadConnection:
    """A new connection to the database of a SQLAlchemy URL."""
    parsed = make_url(url)
    return (
        SqliteReadConnection(_open_file(parsed))
        if parsed.get_backend_name() == "sqlite"
        else PostgresReadConnection(_dial(parsed))
    )


class SqliteReadConnection(SqliteDatabase):
    """A reader of a file in WAL mode: never waits for the writer, nor the writer for it."""

    usable = True

    @contextmanager
    def snapshot(self, tables: Sequence[str], first: str = "SELECT 1") -> Iterator[Any]:
        self._connection.execute("BEGIN")
        try:
            yield self.one(first)
        finally:
            if self._connection.in_transaction:  # some errors have ended it already
                self._connection.execute("ROLLBACK")

    @contextmanager
    def stream_at(
        self, moment: str, columns: str, rest: str, values: Values = ()
    ) -> Iterator[tuple[Any, Iterator[Any]]]:
        sql = f"SELECT {columns} {rest}"
        with self.snapshot((), moment) as (value,), closing(self._connection.execute(sql, values)) as rows:
            yield _with_first_row(rows, lambda _: value)

    def close(self) -> None:
        self.usable = False
        self._connection.close()


class PostgresReadConnection(PostgresDatabase):
    """A reader of a server, each statement its own transaction unless in a snapshot."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection)
        self._prepared = PreparedStatements(connection)

    @property
    def usable(self) -> bool:
        return not self._connection.closed

    @contextmanager
    def snapshot(self, tables: Sequence[str], first: str = "SELECT 1") -> Iterator[Any]:
        try:
            # The lock comes before the first look: a swap in between would show a table newer than the snapshot, empty.
            lock = f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE; " if tables else ""
            found = self._connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {lock}{first}".encode())
            while found.nextset():
                pass
            yield found.fetchone()
        finally:
            if self._connection.info.transaction_status is TransactionStatus.INERROR:
                self.close()
            elif self.usable:
                self._connection.execute("COMMIT")  # with ROLLBACK the driver forgets all that it has prepared

    @contextmanager
    def stream_at(
        self, moment: str, columns: str, rest: str, values: Values = ()
    ) -> Iterator[tuple[Any, Iterator[Any]]]:
        # A column more in each row costs less than a transaction around two statements, which is three round trips.
        with closing(self._prepared.rows(f"SELECT {columns}, ({moment}) {rest}", values)) as rows:
            yield _with_first_row(rows, lambda first: first[-1])

    def close(self) -> None:
        self._connection.close()


def _with_first_row(rows: Iterator[Any], value: Callable[[Any], Any]) -> tuple[Any, Iterator[Any]]:
    first = next(rows, None)
    return (None, iter(())) if first is None else (value(first), chain((first,), rows))


def _open_file(url: URL) -> sqlite3.Connection:
    source = f"file:{quote(url.database or '')}?mode=rw"
    connection = sqlite3.connect(source, uri=True, isolation_level=None, check_same_thread=False, timeout=60)
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
    return connection


def _dial(url: URL) -> psycopg.Connection[tuple[object, ...]]:
    source = url.set(drivername="postgresql").render_as_string(hide_password=False)
    connection = psycopg.connect(source, autocommit=True)
    for setting in PLANNER_SETTINGS:
        connection.execute(setting)
    return connection

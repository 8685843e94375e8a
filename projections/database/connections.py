"""Read-only connections of the drivers; their readers never wait for writers."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet

from sqlalchemy import URL, make_url

from annals.commands.store.database.engine import driver_uri, postgresql_options, set_session
from annals.commands.store.database.known_log_end import known_log_end
from annals.commands.store.database.store_file import existing_file, require_unchanged
from annals.projections.database.drivers import Database, PostgresDatabase, SqliteDatabase, Values

if TYPE_CHECKING:
    import psycopg

#: The status of a PostgreSQL connection whose transaction has failed, `PQTRANS_INERROR` of libpq.
_FAILED: Final = 3
#: Bytes of a SQLite file that readers map into memory: hot pages are read without a system call.
MMAP_BYTES: Final = 1 << 30
#: Kilobytes of cache per connection for other pages, such as those not yet copied from the write-ahead log. A list of a
#: thousand Resources needs more than the usual half of it, and would read all pages again each time.
CACHE_KILOBYTES: Final = 4096
#: PostgreSQL's planner settings.
PLANNER_SETTINGS: Final = (
    # Every query here uses a key; a prepared plan from the time of a small table would keep scanning a grown one.
    "SET enable_seqscan = off",
    # Most queries read rows in index order, a few at a time; a bitmap scan collects all of them and then sorts.
    "SET enable_bitmapscan = off",
    # A custom plan is made for each execution. Where statistics say next to nothing about the values, it may scan all
    # leaves of a collection.
    "SET plan_cache_mode = force_generic_plan",
    # Compiling one of these queries takes ten times as long as running it.
    "SET jit = off",
)


class ReadConnection(Database, Protocol):
    """A connection of one reader."""

    @property
    def is_open(self) -> bool:
        """Whether it is still open."""

    def snapshot(self, tables: Sequence[str], first_query: str = "SELECT 1") -> AbstractContextManager[Any]:
        """A read transaction on one snapshot; yields the row of `first_query`, which costs no round trip.

        tables: those that a rebuild may swap meanwhile.
        """

    def stream_at(
        self, value_query: str, columns: str, clauses: str, values: Values = ()
    ) -> AbstractContextManager[tuple[Any, Iterator[Any]]]:
        """The value of one query, and the rows of another at the same moment, a few at a time.

        The database computes further rows in the meantime. value_query: a query without parameters. columns, clauses:
        the other query in two parts, without its SELECT; its rows start with these columns. values: texts and integers.
        The value is None if there are no rows. Run no other query in the block; afterwards the connection may be closed
        if not all rows were read.
        """

    def close(self) -> None:
        """Closes it; thread-safe."""


def connect(url: str) -> ReadConnection:
    """A new connection to the database of a SQLAlchemy URL."""
    parsed = make_url(url)
    return (
        SqliteReadConnection(_open_file(parsed))
        if parsed.get_backend_name() == "sqlite"
        else PostgresReadConnection(connect_server(parsed))
    )


class SqliteReadConnection(SqliteDatabase):
    """A reader of a file in WAL mode: it never waits for the writer, nor the writer for it."""

    is_open = True

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._streams: WeakSet[sqlite3.Cursor] = WeakSet()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Every row, a few at a time in a snapshot. Its end ends the stream; otherwise all rows are read at once.

        An unfinished statement would keep the connection at its moment, so that later reads miss new commits.
        """
        cursor = self._connection.execute(sql, values)
        if not self._connection.in_transaction:
            return iter(cursor.fetchall())
        self._streams.add(cursor)
        return cursor

    @contextmanager
    def snapshot(self, tables: Sequence[str], first_query: str = "SELECT 1") -> Iterator[Any]:
        self._connection.execute("BEGIN")
        try:
            yield self.one(first_query)
        finally:
            for stream in self._streams:
                stream.close()
            if self._connection.in_transaction:  # some errors have ended it already
                self._connection.execute("ROLLBACK")

    @contextmanager
    def stream_at(
        self, value_query: str, columns: str, clauses: str, values: Values = ()
    ) -> Iterator[tuple[Any, Iterator[Any]]]:
        sql = f"SELECT {columns} {clauses}"
        with self.snapshot((), value_query) as (value,), closing(self._connection.execute(sql, values)) as rows:
            yield _with_first_row(rows, lambda _: value)

    def close(self) -> None:
        self.is_open = False
        self._connection.close()


class PostgresReadConnection(PostgresDatabase):
    """A reader of a server; each statement is its own transaction unless in a snapshot."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        from annals.projections.database.prepared_statements import PreparedStatements  # imports psycopg

        super().__init__(connection)
        self._prepared = PreparedStatements(connection)
        self._streams: WeakSet[Generator[Any, None, None]] = WeakSet()

    @property
    def is_open(self) -> bool:
        return not self._connection.closed

    def look_up(self, sql: str, values: Sequence[str | int] = ()) -> Any:
        return self._prepared.row(sql, values)

    def stream(self, sql: str, values: Values = ()) -> Generator[Any, None, None]:
        """Every row, a few at a time in a snapshot, whose end ends the stream.

        A stream that is closed later would fail the transaction of that moment, which does not have its cursor.
        """
        rows = super().stream(sql, values)
        self._streams.add(rows)
        return rows

    @contextmanager
    def snapshot(self, tables: Sequence[str], first_query: str = "SELECT 1") -> Iterator[Any]:
        try:
            # Lock before the first query: after a swap in between, a table would be newer than the snapshot, and appear
            # empty.
            lock = f"LOCK TABLE {', '.join(tables)} IN ACCESS SHARE MODE; " if tables else ""
            cursor = self._connection.execute(
                f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {lock}{first_query}".encode()
            )
            while cursor.nextset():
                pass
            yield cursor.fetchone()
        finally:
            for stream in self._streams:
                stream.close()
            if self._connection.info.transaction_status == _FAILED:
                self.close()
            elif self.is_open:
                self._connection.execute("COMMIT")  # after a ROLLBACK, the driver forgets all prepared statements

    @contextmanager
    def stream_at(
        self, value_query: str, columns: str, clauses: str, values: Values = ()
    ) -> Iterator[tuple[Any, Iterator[Any]]]:
        # One more column in each row costs less than a transaction around two statements, which is three round trips.
        with closing(self._prepared.rows(f"SELECT {columns}, ({value_query}) {clauses}", values)) as rows:
            yield _with_first_row(rows, lambda first: first[-1])

    def close(self) -> None:
        self._connection.close()


def _with_first_row(rows: Iterator[Any], value: Callable[[Any], Any]) -> tuple[Any, Iterator[Any]]:
    first_row = next(rows, None)
    return (None, iter(())) if first_row is None else (value(first_row), chain((first_row,), rows))


def _open_file(url: URL) -> sqlite3.Connection:
    path = url.database or ""
    require_unchanged(path)
    connection = sqlite3.connect(
        existing_file(path), uri=True, isolation_level=None, check_same_thread=False, timeout=60
    )
    connection.execute("PRAGMA query_only = ON")
    connection.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KILOBYTES}")
    return connection


def connect_server(url: URL) -> psycopg.Connection[tuple[object, ...]]:
    """A new connection of the driver to a PostgreSQL server, with the planner settings of readers."""
    import psycopg  # takes long, and a SQLite store does not need it

    connection = psycopg.connect(driver_uri(url), autocommit=True, **postgresql_options(url))
    known_log_end(url).check_new(connection)
    set_session(connection)
    for setting in PLANNER_SETTINGS:
        connection.execute(setting)
    return connection

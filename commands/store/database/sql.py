"""Raw statements for both databases, for paths where building SQL each time would cost more than running it.

Statements use `?`, `{among}` for "is one of the values in the next parameter", and `{keys}` for a table of these values
with the column `key`. Both have the parameter that `list_parameter` returns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql

from annals.commands.store.database import binary_arrays
from annals.commands.store.database.binary_arrays import PLACEHOLDER, BinaryArray
from annals.domain.values.json_text import dumps

#: The maximum number of rows or keys in one statement: enough for cheap round trips, few enough to bound memory.
CHUNK: Final = 1000

#: The maximum bytes of blobs in one statement, unless a single row has more; PostgreSQL accepts at most a gigabyte.
MAX_BLOB_BYTES: Final = 16 << 20

#: The maximum number of rows of a statement that is combined with others.
MAX_COMBINED_ROWS: Final = 200

#: The key of a connection's `info` with its `CombinedWrites`.
_COMBINED_WRITES: Final = "annals_combined_writes"
_IN_LIST: Final = {"sqlite": "IN (SELECT value FROM json_each(?))", "postgresql": "= ANY(?)"}
#: The table of a `{keys}`.
LIST_TABLES: Final = {
    "sqlite": "(SELECT value AS key FROM json_each(?))",
    "postgresql": '(SELECT unnest(?::text[]) COLLATE "C" AS key)',
}
_POSTGRESQL_DIALECT: Final = postgresql.dialect()

T = TypeVar("T")


def run(connection: Connection, statement: str, parameters: tuple[Any, ...] = ()) -> Any:
    """The driver's cursor over a statement's rows. Errors are the driver's own.

    A transaction must be open: this does not begin one, unlike SQLAlchemy's own methods, which cost ten times as much.
    """
    return _driver_connection(connection).execute(native_statement(statement, connection.dialect.name), parameters)


def scalar(connection: Connection, statement: str, parameters: tuple[Any, ...] = ()) -> Any:
    """The first column of the first row; None when there is no row."""
    row = run(connection, statement, parameters).fetchone()
    return row[0] if row else None


def list_parameter(connection: Connection, values: Collection[str]) -> Any:
    """The parameter for an `{among}` or a `{keys}`."""
    return dumps(list(values)).decode() if connection.dialect.name == "sqlite" else list(values)


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The items, at most CHUNK at a time."""
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]


def insert(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]], conflict: str = "") -> None:
    """Inserts rows whose values are in the order of the table's columns.

    conflict: an ON CONFLICT clause. PostgreSQL gets a batch of rows as one array per column, because psycopg's
    executemany uses pipeline mode, which has been seen to stall.
    """
    driver, dialect = _driver_connection(connection), connection.dialect.name
    statement = _insert_statement(table, conflict, dialect)
    if dialect == "sqlite":
        driver.executemany(statement, rows)
        return
    writes = combined_writes(connection)
    for batch in insert_batches(rows):
        arrays = binary_arrays.encode_columns(batch, binary_arrays.column_types(table))
        if writes is not None and len(rows) <= MAX_COMBINED_ROWS:
            writes.add(statement, arrays)
        else:
            binary_arrays.execute(driver, statement, arrays)


class CombinedWrites:
    """Statements for PostgreSQL that write different rows, and are sent as one: a round trip takes as long as a row."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._statements: list[str] = []
        self._arrays: list[BinaryArray] = []

    def add(self, statement: str, arrays: Iterable[BinaryArray]) -> None:
        """Adds a statement that sees nothing of the others."""
        self._statements.append(statement)
        self._arrays += arrays

    def send(self) -> None:
        """Runs the statements."""
        if self._statements:
            binary_arrays.execute(self._driver, _combined_statement(tuple(self._statements)), self._arrays)
            self._statements, self._arrays = [], []


@contextmanager
def combining_writes(connection: Connection) -> Iterator[None]:
    """In the block, PostgreSQL gets small insertions together. Queries by a `Database` send what there is before."""
    if connection.dialect.name == "sqlite":
        yield
        return
    writes = connection.info[_COMBINED_WRITES] = CombinedWrites(_driver_connection(connection))
    try:
        yield
        writes.send()
    finally:
        del connection.info[_COMBINED_WRITES]


def combined_writes(connection: Connection) -> CombinedWrites | None:
    """Where to add statements in a block of `combining_writes`; None outside."""
    writes: CombinedWrites | None = connection.info.get(_COMBINED_WRITES)
    return writes


def insert_batches(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows in batches of at most CHUNK rows and MAX_BLOB_BYTES of blobs."""
    batch: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        blob_bytes = sum(len(value) for value in row if isinstance(value, bytes))
        if batch and (len(batch) == CHUNK or size + blob_bytes > MAX_BLOB_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += blob_bytes
    if batch:
        yield batch


def _driver_connection(connection: Connection) -> Any:
    """The driver's connection below SQLAlchemy's; sqlite3 and psycopg connections accept the same calls."""
    return connection.connection.driver_connection


@lru_cache(maxsize=256)
def native_statement(statement: str, dialect: str) -> str:
    """The statement as the driver of a dialect takes it."""
    text = statement.replace("{among}", _IN_LIST[dialect]).replace("{keys}", LIST_TABLES[dialect])
    return text if dialect == "sqlite" else text.replace("?", "%s")


@lru_cache(maxsize=64)
def _insert_statement(table: Table, conflict: str, dialect: str) -> str:
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    if dialect == "sqlite":
        source = f"VALUES ({', '.join('?' for _ in table.columns)})"
    else:
        arrays = (column.type.compile(_POSTGRESQL_DIALECT).partition(" COLLATE")[0] for column in table.columns)
        source = f"SELECT * FROM unnest({', '.join(f'{PLACEHOLDER}::{array}[]' for array in arrays)})"
    return f'INSERT INTO "{table.name}" ({names}) {source} {conflict}'


@lru_cache(maxsize=256)
def _combined_statement(statements: tuple[str, ...]) -> str:
    *parts, last = statements
    named_parts = (f"w{number} AS ({part})" for number, part in enumerate(parts))
    return f"WITH {', '.join(named_parts)} {last}" if parts else last

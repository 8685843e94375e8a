"""Adapters for the drivers of the two databases, limited to what differs between them.

SQL uses `?` for parameters. SQLAlchemy creates tables and owns connections. Statements that run for each event or each
request bypass it, because its overhead is several times their cost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, Protocol

from sqlalchemy import Connection, Table

from annals.commands.store.database import binary_arrays
from annals.commands.store.database.binary_arrays import PLACEHOLDER
from annals.commands.store.database.sql import LIST_TABLES, MAX_COMBINED_ROWS, CombinedWrites, combined_writes
from annals.domain.values.json_text import dumps

if TYPE_CHECKING:
    import psycopg  # takes long, and a SQLite store does not need it

Values = Sequence[Any]

#: The number of rows in one array parameter.
CHUNK: Final = 2000
#: The number of rows in one fetch of a stream.
FETCH_ROWS: Final = 500
#: Rows of one INSERT on SQLite, which then takes half the time of as many with one row each.
ROWS_PER_INSERT: Final = 50
#: From this number of rows, COPY is faster than a prepared INSERT.
MIN_COPY_ROWS: Final = 200

#: The status of a PostgreSQL connection without a transaction, `PQTRANS_IDLE` of libpq.
_IDLE: Final = 0
_CURSOR_NUMBERS: Final = count()
_ARRAY_TYPES: Final = {str: "text[]", int: "bigint[]", float: "double precision[]", bytes: "bytea[]"}


class Database(Protocol):
    """One connection of a driver.

    find_function: the SQL function that returns the position of one text in another, 1 for the first.
    like_condition: whether the bytes in a column, `{0}`, match a pattern of UTF-8 bytes, where a backslash makes the
    next character literal.
    list_table: a table expression of one list parameter, with the column `key`; numbered_list_table has the order of
    the list in `number` as well.
    table_prefix: the prefix for the name of a table where a query has given that name to something else.
    share_lock: the end of a SELECT whose rows no other transaction may change until this one ends.
    """

    find_function: str
    like_condition: str
    list_table: str
    numbered_list_table: str
    table_prefix: str
    share_lock: str

    def run(self, sql: str, values: Values = ()) -> None:
        """Runs a statement that returns no rows."""

    def one(self, sql: str, values: Values = ()) -> Any:
        """The first row, or None."""

    def look_up(self, sql: str, values: Sequence[str | int] = ()) -> Any:
        """`one`, in the fastest way, for statements that run for most requests."""

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        """Every row."""

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Every row, a few at a time; memory stays constant inside a transaction."""

    def in_list(self, column: str) -> str:
        """A condition with one list parameter, which `list_parameter` builds."""

    def list_parameter(self, values: Iterable[str | int]) -> Any:
        """The parameter of `in_list`: texts or integers."""

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        """Adds new rows, with all columns in their order."""

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        """Adds rows, or replaces those with the same primary keys; a key appears once."""

    def delete(self, table: Table, keys: Sequence[Values]) -> None:
        """Removes rows by primary key."""


def database_of(connection: Connection) -> Database:
    """The driver connection below a SQLAlchemy connection, in its current transaction."""
    driver: Any = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        return SqliteDatabase(driver)
    return PostgresDatabase(driver, combined_writes(connection))


class SqliteDatabase:
    """SQLite; the connection caches prepared statements by their text."""

    find_function = "instr"
    like_condition = "CAST({0} AS TEXT) LIKE CAST(? AS TEXT) ESCAPE '\\'"
    list_table = LIST_TABLES["sqlite"]
    numbered_list_table = "(SELECT key AS number, value AS key FROM json_each(?))"
    table_prefix = "main."
    share_lock = ""  # a transaction that writes excludes all others that do

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Values = ()) -> None:
        self._connection.execute(sql, values)

    def one(self, sql: str, values: Values = ()) -> Any:
        return self._connection.execute(sql, values).fetchone()

    look_up = one

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        return self._connection.execute(sql, values)

    @staticmethod
    def in_list(column: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(?))"

    @staticmethod
    def list_parameter(values: Iterable[str | int]) -> Any:
        return dumps(list(values)).decode()

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        whole = len(rows) - len(rows) % ROWS_PER_INSERT
        if whole:
            parts = (rows[start : start + ROWS_PER_INSERT] for start in range(0, whole, ROWS_PER_INSERT))
            values = (tuple(chain.from_iterable(part)) for part in parts)
            self._connection.executemany(_insert_statement(table, ROWS_PER_INSERT), values)
        if whole < len(rows):
            self._connection.executemany(_insert_statement(table), rows[whole:])

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        self._connection.executemany(f"{_insert_statement(table)} {_on_conflict(table)}", rows)

    def delete(self, table: Table, keys: Sequence[Values]) -> None:
        if not keys:
            return
        key_condition = " AND ".join(f"{key} = ?" for key in _key_names(table))
        self._connection.executemany(f"DELETE FROM {table.name} WHERE {key_condition}", keys)


class PostgresDatabase:
    """PostgreSQL. Sends many rows as arrays or by COPY: psycopg's `executemany` is a pipeline, which can stall."""

    find_function = "strpos"
    like_condition = "{0} LIKE ?"
    list_table = LIST_TABLES["postgresql"]
    numbered_list_table = (
        '(SELECT number, text COLLATE "C" AS key FROM unnest(?::text[]) WITH ORDINALITY AS list (text, number))'
    )
    # A query in WITH does not see its own name, so the table of the same name needs no prefix.
    table_prefix = ""
    share_lock = " FOR SHARE"

    def __init__(self, connection: psycopg.Connection[Any], writes: CombinedWrites | None = None) -> None:
        self._connection = connection
        self._writes = writes
        binary_arrays.register_dumpers(connection)
        self._cursor = connection.cursor()  # reused, because a new one costs a tenth of a lookup

    def run(self, sql: str, values: Values = ()) -> None:
        self._send_writes()
        self._connection.execute(_psycopg_sql(sql), values)

    def one(self, sql: str, values: Values = ()) -> Any:
        self._send_writes()
        return self._cursor.execute(_psycopg_sql(sql), values, prepare=True).fetchone()

    def look_up(self, sql: str, values: Sequence[str | int] = ()) -> Any:
        return self.one(sql, values)

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        self._send_writes()
        return self._connection.execute(_psycopg_sql(sql), values, prepare=True).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Generator[Any, None, None]:
        self._send_writes()
        if self._connection.autocommit and self._connection.info.transaction_status == _IDLE:
            yield from self.all(sql, values)  # a server-side cursor needs a transaction
            return
        with self._connection.cursor(name=f"stream_{next(_CURSOR_NUMBERS)}", binary=True) as cursor:
            cursor.itersize = FETCH_ROWS
            yield from cursor.execute(_psycopg_sql(sql), values)

    @staticmethod
    def in_list(column: str) -> str:
        return f"{column} = ANY(?)"

    @staticmethod
    def list_parameter(values: Iterable[str | int]) -> Any:
        return binary_arrays.encode_list(list(values))

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        if len(rows) < MIN_COPY_ROWS:
            return self._with_arrays(f"INSERT INTO {table.name} SELECT * FROM {_unnest(table)}", table, rows)
        self._send_writes()
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table.name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return None

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        self._with_arrays(f"INSERT INTO {table.name} SELECT * FROM {_unnest(table)} {_on_conflict(table)}", table, rows)

    def delete(self, table: Table, keys: Sequence[Values]) -> None:
        if not keys:
            return
        names = _key_names(table)
        key_condition = " AND ".join(f"{table.name}.{name} = gone.{name}" for name in names)
        deleted_keys = f"{_unnest(table, len(names))} AS gone ({', '.join(names)})"
        self._with_arrays(f"DELETE FROM {table.name} USING {deleted_keys} WHERE {key_condition}", table, keys)

    def _with_arrays(self, sql: str, table: Table, rows: Sequence[Values]) -> None:
        for chunk in _chunks(rows):
            arrays = binary_arrays.encode_columns(chunk, binary_arrays.column_types(table)[: len(chunk[0])])
            if self._writes is not None and len(rows) <= MAX_COMBINED_ROWS:
                self._writes.add(sql, arrays)
            else:
                binary_arrays.execute(self._connection, sql, arrays)

    def _send_writes(self) -> None:
        if self._writes is not None:
            self._writes.send()


@lru_cache(maxsize=256)
def _psycopg_sql(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


@lru_cache(maxsize=256)
def _insert_statement(table: Table, rows: int = 1) -> str:
    row = f"({', '.join('?' for _ in table.columns)})"
    return f"INSERT INTO {table.name} VALUES {', '.join([row] * rows)}"


@lru_cache(maxsize=256)
def _on_conflict(table: Table) -> str:
    keys = _key_names(table)
    assignments = ", ".join(
        f"{name} = excluded.{name}" for name in (column.name for column in table.columns) if name not in keys
    )
    action = f"UPDATE SET {assignments}" if assignments else "NOTHING"
    return f"ON CONFLICT ({', '.join(keys)}) DO {action}"


@lru_cache(maxsize=256)
def _unnest(table: Table, column_count: int | None = None) -> str:
    arrays = (f"{PLACEHOLDER}::{_ARRAY_TYPES[type]}" for type in binary_arrays.column_types(table)[:column_count])
    return f"unnest({', '.join(arrays)})"


@lru_cache(maxsize=256)
def _key_names(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.primary_key)


def _chunks(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    return (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))


class ReadOnlyDatabase:
    """What databases that only read have in common. dialect: another database, or the class of one."""

    def __init__(self, dialect: Database | type[SqliteDatabase | PostgresDatabase]) -> None:
        self.find_function, self.like_condition = dialect.find_function, dialect.like_condition
        self.list_table, self.numbered_list_table = dialect.list_table, dialect.numbered_list_table
        self.table_prefix, self.share_lock = dialect.table_prefix, dialect.share_lock
        self.in_list, self.list_parameter = dialect.in_list, dialect.list_parameter

    def run(self, sql: str, values: Values = ()) -> None:
        raise TypeError("this database only reads")

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        self.run(table.name)

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        self.run(table.name)

    def delete(self, table: Table, keys: Sequence[Values]) -> None:
        self.run(table.name)

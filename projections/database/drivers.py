"""The two databases through their own drivers: what they say differently, and nothing else.

SQL is written with `?` for parameters. SQLAlchemy makes tables and owns connections; the statements that run for each
event or each request go past it, because its overhead is several times theirs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Final, Protocol

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Table

from domain.values.json_text import dumps

Values = Sequence[Any]

#: Rows of one array parameter or one fetch.
CHUNK: Final = 2000
#: From this many rows on COPY beats a prepared INSERT.
MIN_COPY_ROWS: Final = 200

_CURSORS: Final = count()
_ARRAYS: Final = {str: "text[]", int: "bigint[]", float: "double precision[]"}


class Database(Protocol):
    """One connection of a driver.

    find: the SQL function that gives the place of a text in another, 1 for the first. nonascii: a condition on one
    column, `{0}`. listing: a table expression of one list parameter, with the column `key`. stored: what stands before
    the name of a table where a query has given that name to something else.
    """

    find: str
    nonascii: str
    listing: str
    stored: str

    def run(self, sql: str, values: Values = ()) -> None:
        """Carries out a statement that gives no rows."""

    def one(self, sql: str, values: Values = ()) -> Any:
        """The first row, or None."""

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        """Every row."""

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Every row, a few at a time; memory stays flat inside a transaction."""

    def named(self, column: str) -> str:
        """A condition that takes one list parameter, `listed` of the values wanted."""

    def listed(self, values: Iterable[str]) -> Any:
        """The parameter of `named`."""

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        """Adds new rows, all columns in their order."""

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        """Adds rows or replaces those with their primary keys; a key appears once."""

    def delete(self, table: Table, keys: Sequence[Values]) -> None:
        """Removes rows by primary key."""


def database_of(connection: Connection) -> Database:
    """The driver's side of a SQLAlchemy connection, in whatever transaction that is in."""
    driver: Any = connection.connection.driver_connection
    return SqliteDatabase(driver) if isinstance(driver, sqlite3.Connection) else PostgresDatabase(driver)


class SqliteDatabase:
    """SQLite; the connection keeps its prepared statements by text."""

    find = "instr"
    nonascii = "length({0}) <> length(CAST({0} AS BLOB))"
    listing = "(SELECT value AS key FROM json_each(?))"
    stored = "main."

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, sql: str, values: Values = ()) -> None:
        self._connection.execute(sql, values)

    def one(self, sql: str, values: Values = ()) -> Any:
        return self._connection.execute(sql, values).fetchone()

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        return self._connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        return self._connection.execute(sql, values)

    def named(self, column: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(?))"

    def listed(self, values: Iterable[str]) -> Any:
        return dumps(list(values)).decode()

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        self._connection.executemany(_insert(table), rows)

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        self._connection.executemany(f"{_insert(table)} {_on_conflict(table)}", rows)

    def delete(self, table: Table, keys: Sequence[Values]) -> None:
        same = " AND ".join(f"{key} = ?" for key in _keys(table))
        self._connection.executemany(f"DELETE FROM {table.name} WHERE {same}", keys)


class PostgresDatabase:
    """PostgreSQL. Many rows travel as arrays or by COPY: psycopg's `executemany` is a pipeline, which can stall."""

    find = "strpos"
    nonascii = "octet_length({0}) <> length({0})"
    listing = '(SELECT unnest(?::text[]) COLLATE "C" AS key)'
    # A query in WITH does not see its own name, so the table behind it needs no other.
    stored = ""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._cursor = connection.cursor()  # kept, because a new one costs a tenth of a look-up

    def run(self, sql: str, values: Values = ()) -> None:
        self._connection.execute(_format(sql), values)

    def one(self, sql: str, values: Values = ()) -> Any:
        return self._cursor.execute(_format(sql), values, prepare=True).fetchone()

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        return self._connection.execute(_format(sql), values, prepare=True).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        if self._connection.autocommit and self._connection.info.transaction_status is TransactionStatus.IDLE:
            yield from self.all(sql, values)  # a cursor lives in a transaction
            return
        with self._connection.cursor(name=f"stream_{next(_CURSORS)}") as cursor:
            cursor.itersize = CHUNK
            yield from cursor.execute(_format(sql), values)

    def named(self, column: str) -> str:
        return f"{column} = ANY(?)"

    def listed(self, values: Iterable[str]) -> Any:
        return list(values)

    def insert(self, table: Table, rows: Sequence[Values]) -> None:
        if len(rows) < MIN_COPY_ROWS:
            return self._with_arrays(f"INSERT INTO {table.name} SELECT * FROM {_unnest(table)}", rows)
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table.name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return None

    def upsert(self, table: Table, rows: Sequence[Values]) -> None:
        self._with_arrays(f"INSERT INTO {table.name} SELECT * FROM {_unnest(table)} {_on_conflict(table)}", rows)

    def delete(self, table: Table, keys: Sequence[Values]) -> None:
        names = _keys(table)
        same = " AND ".join(f"{table.name}.{name} = gone.{name}" for name in names)
        gone = f"{_unnest(table, len(names))} AS gone ({', '.join(names)})"
        self._with_arrays(f"DELETE FROM {table.name} USING {gone} WHERE {same}", keys)

    def _with_arrays(self, sql: str, rows: Sequence[Values]) -> None:
        for chunk in _chunks(rows):
            self._connection.execute(sql, [list(column) for column in zip(*chunk, strict=True)], prepare=True)


@lru_cache(maxsize=256)
def _format(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


@lru_cache(maxsize=256)
def _insert(table: Table) -> str:
    return f"INSERT INTO {table.name} VALUES ({', '.join('?' for _ in table.columns)})"


@lru_cache(maxsize=256)
def _on_conflict(table: Table) -> str:
    keys = _keys(table)
    moved = ", ".join(
        f"{name} = excluded.{name}" for name in (column.name for column in table.columns) if name not in keys
    )
    return f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {moved}"


@lru_cache(maxsize=256)
def _unnest(table: Table, width: int | None = None) -> str:
    # Binary, because psycopg quotes texts of arrays with a regular expression each.
    arrays = (f"%b::{_ARRAYS[column.type.python_type]}" for column in list(table.columns)[:width])
    return f"unnest({', '.join(arrays)})"


@lru_cache(maxsize=256)
def _keys(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.primary_key)


def _chunks(rows: Sequence[Values]) -> Iterator[Sequence[Values]]:
    return (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))

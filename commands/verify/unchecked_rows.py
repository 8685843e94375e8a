"""Reading a store of which nothing can be taken for granted: not that a value is of its column's kind, nor that the
database can read its own pages.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

import psycopg
from sqlalchemy import Connection

from commands.store import sql, tables
from commands.store.log import Store

T = TypeVar("T", bound=tuple[Any, ...])

#: What the drivers raise for data that they cannot read; a database out of reach is not among it.
READ_ERRORS: Final = (sqlite3.DatabaseError, psycopg.InternalError, psycopg.DataError)
_OUT_OF_REACH: Final = sqlite3.OperationalError

#: By the type that a member has to have: what stands for a value of any other.
_OTHERS: Final[dict[type, Callable[[Any], Any]]] = {
    int: lambda value: -1,
    str: repr,
    bytes: lambda value: repr(value).encode(),
}
_ROW: Final = re.compile(r"\brow (\d+)\b")


@contextmanager
def open_snapshot(store: Store) -> Iterator[Connection]:
    """A connection that sees one moment of a store, whatever is written meanwhile."""
    # A SQLite transaction is a snapshot already, and knows no weaker level by this name.
    engine = store.engine
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with engine.connect() as connection, _tolerate_bad_text(connection.connection.driver_connection):
        connection.begin()  # and never committed, which a damaged file refuses
        yield connection


def unchecked_row(kind: type[T], row: Iterable[Any]) -> T:
    """A row as a named tuple of numbers, texts and bytes.

    SQLite lets values of any type into any column. One of another type is replaced by one that no sound row has, and
    so is found where it is compared and hashed, like any other change.
    """
    return kind(*(_member(value, type) for value, type in zip(row, _types(kind), strict=True)))


def storage_faults(connection: Connection, last: int) -> Iterator[tuple[int, str]]:
    """What SQLite finds wrong with how it keeps the log's tables and their indexes; what rows say is not looked at.

    Each with the position that it names, or the last one.
    """
    if connection.dialect.name != "sqlite":
        return
    for table in tables.METADATA.sorted_tables:
        for (said,) in sql.run(connection, f"PRAGMA integrity_check({table.name})").fetchall():
            if said != "ok":
                row = _ROW.search(said) if table in (tables.log, tables.interaction) else None
                yield min(int(row[1]), last) if row else last, f"the file is damaged in {table.name}: {_line(said)}"


@contextmanager
def catch_unreadable(failed: Callable[[str], None]) -> Iterator[None]:
    """Ends where the database cannot read on, with what it says.

    Raises: the driver's OperationalError where the database is out of reach.
    """
    try:
        yield
    except READ_ERRORS as error:
        if isinstance(error, _OUT_OF_REACH):
            raise
        failed(_line(str(error)))


@cache
def _types(kind: type[Any]) -> tuple[type, ...]:
    return tuple(get_type_hints(kind).values())


def _member(value: Any, type: type) -> Any:
    return value if isinstance(value, type) else _OTHERS[type](value)


def _line(said: str) -> str:
    return " ".join(said.split())


@contextmanager
def _tolerate_bad_text(driver: Any) -> Iterator[None]:
    """Lets SQLite give text that is no UTF-8 any more, so that it can be found rather than fail."""
    if not isinstance(driver, sqlite3.Connection):
        yield
        return
    strict, driver.text_factory = driver.text_factory, lambda content: content.decode(errors="backslashreplace")
    try:
        yield
    finally:
        driver.text_factory = strict

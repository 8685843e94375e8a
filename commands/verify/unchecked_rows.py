"""Reads a store that may be damaged: values may have the wrong type, and pages may be unreadable."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

from sqlalchemy import Connection

from annals.commands.store.database import sql, tables
from annals.commands.store.database.driver_errors import postgres_errors
from annals.commands.store.log import Store

T = TypeVar("T", bound=tuple[Any, ...])

_UNAVAILABLE_ERROR: Final = sqlite3.OperationalError

#: By the type that a member must have: the replacement for a value of any other type.
_REPLACEMENTS: Final[dict[type, Callable[[Any], Any]]] = {
    int: lambda value: -1,
    str: repr,
    bytes: lambda value: repr(value).encode(),
}
_ROW_NUMBER: Final = re.compile(r"\brow (\d+)\b")


@contextmanager
def open_snapshot(store: Store) -> Iterator[Connection]:
    """A connection that sees a snapshot of a store, whatever is written meanwhile."""
    # A SQLite transaction is a snapshot already, and does not accept this isolation level.
    engine = store.engine
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with engine.connect() as connection, _tolerate_bad_text(connection.connection.driver_connection):
        connection.begin()  # never committed, because a damaged file refuses the commit
        yield connection


def unchecked_row(row_type: type[T], row: Iterable[Any]) -> T:
    """A row as a named tuple of numbers, texts and bytes.

    SQLite accepts values of any type in any column. A value of the wrong type is replaced by one that no intact row
    has. Comparing and hashing then find it, like any other change. Last members with a default may be missing.
    """
    values, types = tuple(row), _field_types(row_type)
    if tuple(map(type, values)) == types:
        return row_type(*values)
    return row_type(*(_checked_member(value, type) for value, type in zip(values, types, strict=False)))


def storage_faults(connection: Connection, log_end: int) -> Iterator[tuple[int, str]]:
    """The faults that SQLite finds in the storage of the log's tables and indexes, without checking the rows' content.

    Each fault has the position that it names, or the last one.
    """
    if connection.dialect.name != "sqlite":
        return
    names = {name for (name,) in sql.run(connection, "SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()}
    # The store of an older program lacks the newest tables.
    for table in (table for table in tables.METADATA.sorted_tables if table.name in names):
        for (message,) in sql.run(connection, f"PRAGMA integrity_check({table.name})").fetchall():
            if message != "ok":
                row = _ROW_NUMBER.search(message) if table in (tables.log, tables.interaction) else None
                yield (
                    min(int(row[1]), log_end) if row else log_end,
                    f"the file is damaged in {table.name}: {_single_line(message)}",
                )


@contextmanager
def catch_unreadable(on_failure: Callable[[str], None]) -> Iterator[None]:
    """Stops reading where the database fails, and passes its message to `on_failure`.

    Raises: the driver's OperationalError when the database is unreachable.
    """
    try:
        yield
    except _read_errors() as error:
        if isinstance(error, _UNAVAILABLE_ERROR):
            raise
        on_failure(_single_line(str(error)))


def _read_errors() -> tuple[type[Exception], ...]:
    """The drivers' errors for data that they cannot read; an unreachable PostgreSQL is not included."""
    return (sqlite3.DatabaseError, *postgres_errors("InternalError", "DataError"))


@cache
def _field_types(row_type: type[Any]) -> tuple[type, ...]:
    return tuple(get_type_hints(row_type).values())


def _checked_member(value: Any, type: type) -> Any:
    return value if isinstance(value, type) else _REPLACEMENTS[type](value)


def _single_line(message: str) -> str:
    return " ".join(message.split())


@contextmanager
def _tolerate_bad_text(driver: Any) -> Iterator[None]:
    """Lets SQLite return text that is not UTF-8, so that verification reports it instead of failing."""
    if not isinstance(driver, sqlite3.Connection):
        yield
        return
    text_factory, driver.text_factory = driver.text_factory, lambda content: content.decode(errors="backslashreplace")
    try:
        yield
    finally:
        driver.text_factory = text_factory

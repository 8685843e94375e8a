"""The position of each projection in the log."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import BigInteger, Column, MetaData, Table, Text

from annals.commands.store.damage import UnreadableRow
from annals.projections.database.drivers import Database

#: One row for each projection that has started: its name and the last position that it applied.
POSITIONS: Final = Table(
    "projection",
    MetaData(),
    Column("name", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
)


def read_position(database: Database, name: str) -> int:
    """The last position that a projection applied, 0 before its first."""
    return find_position(database, name) or 0


def find_position(database: Database, name: str) -> int | None:
    """The last position that a projection applied; None if none is stored."""
    row = database.one("SELECT position FROM projection WHERE name = ?", (name,))
    return checked_position(row[0]) if row else None


def checked_position(stored: Any) -> int:
    """A stored position. Raises: UnreadableRow for a value of another type, which SQLite can store as well."""
    if type(stored) is int:
        return stored
    raise UnreadableRow(f"a projection has the invalid position {stored!r:.100}")


def save_position(database: Database, name: str, position: int) -> None:
    """Sets the position of a projection, in the transaction of its writes."""
    database.upsert(POSITIONS, [(name, position)])


def delete_position(database: Database, name: str) -> None:
    """Removes the position of a projection that no longer exists."""
    database.delete(POSITIONS, [(name,)])

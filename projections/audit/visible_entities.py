"""Which part of the log a reader with roles at some places sees; what decides it is in `projections/entities`."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from annals.projections.database.drivers import Database


class Condition(NamedTuple):
    """A condition of SQL with `?` for its values."""

    text: str
    values: tuple[Any, ...]


class VisibleEntities(Protocol):
    """The entities whose history the reader sees. Queries take None for a reader who sees all of them."""

    def sees_stream(self, stream: str) -> bool:
        """Whether the events of a stream are visible."""

    def streams(self, db: Database, column: str, xid: str) -> tuple[str, tuple[Any, ...]]:
        """The condition that a column of streams is of visible entities below the registry or a collection."""

    def tree_keys(self, db: Database, column: str, low: str, high: str) -> tuple[str, tuple[Any, ...]]:
        """The condition that a column of tree keys is between two of them, exclusive, and visible in a Group."""

    def history_keys(self, db: Database, column: str, low: str, high: str) -> tuple[str, tuple[Any, ...]]:
        """The condition that a column of tree keys is from one (inclusive) to another, and its history is visible."""


def keys_condition(visible: VisibleEntities | None, db: Database, column: str, low: str, high: str) -> Condition:
    """The condition that a column of tree keys is from one (inclusive) to another (exclusive), and visible."""
    if visible is None:
        return Condition(f"{column} >= ? AND {column} < ?", (low, high))
    return Condition._make(visible.history_keys(db, column, low, high))

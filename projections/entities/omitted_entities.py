"""Entities that the index over attributes omits, because they have more leaves than it takes.

They are found by their mark. What the index would say of them is decided on their JSON, a row at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from projections.database.drivers import Database
from projections.entities.leaves import OMITTED_PATH
from projections.entities.rows import EntityRow, stored_row
from projections.entities.sql import SqlFragment

#: Finds them. Each column of the index up to the key has its value, so the marked ones of a range lie side by side.
OMITTED_KEYS: Final = (
    "SELECT tree_key FROM attribute WHERE type = ? AND path = ? AND text IS NULL AND number IS NULL"
    " AND remainder IS NULL AND tree_key > ? AND tree_key < ? ORDER BY tree_key"
)
_ROWS: Final = f"SELECT {', '.join(EntityRow._fields)} FROM entity WHERE "


class OmittedEntities:
    """The omitted entities between two keys. apart: keys of those that do not read as their rows say."""

    def __init__(self, db: Database, range: tuple[str, str], apart: Collection[str] = ()) -> None:
        self._db = db
        self._range = range
        self._apart = apart
        self._keys: dict[str, list[str]] = {}

    def keys(self, type: str) -> list[str]:
        """Their tree keys, in order. One look into an index for each type."""
        found = self._keys.get(type)
        if found is None:
            marked = self._db.all(OMITTED_KEYS, (type, OMITTED_PATH, *self._range))
            found = self._keys[type] = [key for (key,) in marked if key not in self._apart]
        return found

    def rows(self, type: str, among: SqlFragment | None = None) -> Iterator[EntityRow]:
        """Their rows, streamed. among: a query for the keys of those that are wanted; None: all are."""
        keys = self.keys(type)
        if not keys:
            return iter(())
        query = SqlFragment(_ROWS + self._db.named("tree_key"), (self._db.listed(keys),))
        if among is not None:
            query = SqlFragment(f"{query.text} AND tree_key IN ({among.text})", (*query.values, *among.values))
        return map(stored_row, self._db.stream(*query))

    def without(self, column: str, type: str) -> SqlFragment:
        """A condition on a column of keys: what they name is not omitted."""
        keys = self.keys(type)
        return (
            SqlFragment(f"NOT ({self._db.named(column)})", (self._db.listed(keys),)) if keys else SqlFragment("1 = 1")
        )

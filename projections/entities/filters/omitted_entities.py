"""Entities that the attribute index omits, because they have more leaves than it accepts.

A marker leaf identifies them. Filters on them are decided on their JSON, one row at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import SqlFragment
from annals.projections.entities.leaves import OMITTED_PATH
from annals.projections.entities.rows import EntityRow, stored_row

#: Finds the markers. All index columns before the key are fixed, so the markers of a range are adjacent in the index.
OMITTED_KEYS: Final = (
    "SELECT tree_key FROM attribute WHERE type = ? AND path = ? AND text IS NULL AND number IS NULL"
    " AND remainder IS NULL AND tree_key > ? AND tree_key < ? ORDER BY tree_key"
)
_SELECT_ROWS: Final = f"SELECT {', '.join(EntityRow._fields)} FROM entity WHERE "


class OmittedEntities:
    """The omitted entities between two keys. excluded_keys: keys to leave out, because their rows are overridden."""

    def __init__(self, db: Database, key_range: tuple[str, str], excluded_keys: Collection[str] = ()) -> None:
        self._db = db
        self._key_range = key_range
        self._excluded_keys = excluded_keys
        self._keys: dict[str, list[str]] = {}

    def keys(self, type: str) -> list[str]:
        """Their tree keys, in order. Cost: one index lookup for each type."""
        type_keys = self._keys.get(type)
        if type_keys is None:
            rows = self._db.all(OMITTED_KEYS, (type, OMITTED_PATH, *self._key_range))
            type_keys = self._keys[type] = [key for (key,) in rows if key not in self._excluded_keys]
        return type_keys

    def rows(self, type: str, key_query: SqlFragment | None = None) -> Iterator[EntityRow]:
        """Their rows, streamed. key_query: a query for the keys of the wanted ones; None for all."""
        keys = self.keys(type)
        if not keys:
            return iter(())
        query = SqlFragment(_SELECT_ROWS + self._db.in_list("tree_key"), (self._db.list_parameter(keys),))
        if key_query is not None:
            query = SqlFragment(f"{query.text} AND tree_key IN ({key_query.text})", (*query.values, *key_query.values))
        return map(stored_row, self._db.stream(*query))

    def not_omitted_condition(self, column: str, type: str) -> SqlFragment:
        """A condition on a column of keys: their entities are not omitted."""
        keys = self.keys(type)
        return (
            SqlFragment(f"NOT ({self._db.in_list(column)})", (self._db.list_parameter(keys),))
            if keys
            else SqlFragment("1 = 1")
        )

"""Entities that the attribute index omits, because they have more leaves than it accepts.

A marker leaf identifies them. Filters on them are decided on their JSON, one row at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import SqlFragment, and_
from annals.projections.entities.id_keys import id_key_bound, tree_key_of
from annals.projections.entities.index_paths import PATH_NUMBER
from annals.projections.entities.index_values import EMPTY_VALUE
from annals.projections.entities.leaves import OMITTED_PATH
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row
from annals.projections.entities.visibility import Visibility

#: Finds the markers: they are adjacent in the index.
OMITTED_KEYS: Final = (
    f"SELECT id_key FROM attribute WHERE path = {PATH_NUMBER} AND value = ? AND id_key > ? AND id_key < ?"
    " ORDER BY id_key"
)
_SELECT_ROWS: Final = f"SELECT {', '.join(ROW_COLUMNS)} FROM entity WHERE type = ? AND "


class OmittedEntities:
    """The omitted entities between two tree keys that are visible.

    excluded_keys: tree keys to leave out, because their rows are overridden.
    """

    def __init__(
        self, db: Database, key_range: tuple[str, str], excluded_keys: Collection[str], visibility: Visibility
    ) -> None:
        self._db = db
        self._key_range = key_range
        self._excluded_keys = excluded_keys
        self._visibility = visibility
        self._keys: dict[str, list[str]] = {}

    def keys(self, type: str) -> list[str]:
        """Their id keys, in order. Cost: one index lookup for each type."""
        type_keys = self._keys.get(type)
        if type_keys is None:
            key_range = (id_key_bound(type, bound) for bound in self._key_range)
            rows = self._db.all(OMITTED_KEYS, (type, OMITTED_PATH, EMPTY_VALUE, *key_range))
            found_keys = ((key, tree_key_of(type, key)) for (key,) in rows)
            type_keys = self._keys[type] = [
                key
                for key, tree_key in found_keys
                if tree_key not in self._excluded_keys and self._visibility.sees_key(tree_key)
            ]
        return type_keys

    def rows(self, type: str, key_query: SqlFragment | None = None) -> Iterator[EntityRow]:
        """Their rows, streamed. key_query: a query for the id keys of the wanted ones; None for all."""
        keys = self.keys(type)
        if not keys:
            return iter(())
        query = SqlFragment(_SELECT_ROWS + self._db.in_list("id_key"), (type, self._db.list_parameter(keys)))
        if key_query is not None:
            query = and_(query, key_query.wrap("id_key IN ({})"))
        return map(stored_row, self._db.stream(*query))

    def not_omitted_condition(self, column: str, type: str) -> SqlFragment:
        """A condition on a column of id keys: their entities are not omitted."""
        keys = self.keys(type)
        return (
            SqlFragment(f"NOT ({self._db.in_list(column)})", (self._db.list_parameter(keys),))
            if keys
            else SqlFragment("1 = 1")
        )

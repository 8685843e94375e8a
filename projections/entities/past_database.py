"""The table `entity` as it was at a log position.

It consists of current rows that already existed then, and of history rows that were replaced later. A query sees both
under the name of the table, so SQL for the present also reads the past. Both parts use the same ranges of keys and are
merged in key order, without reading other later changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from annals.projections.database.drivers import Database, ReadOnlyDatabase, Values
from annals.projections.entities.rows import ROW_COLUMNS

_COLUMNS: Final = ", ".join(ROW_COLUMNS)
_PAST_ENTITY_TABLE: Final = (
    f"WITH entity AS NOT MATERIALIZED (SELECT {_COLUMNS} FROM {{}}entity WHERE since <= ?"
    f" UNION ALL SELECT {_COLUMNS} FROM entity_history WHERE since <= ? AND until > ?) "
)
#: An entity that changes with its descendants has many history rows, so the last one is looked up separately.
_SELECT_ENTITY: Final = (
    f"SELECT {_COLUMNS} FROM entity WHERE tree_key = ? AND since <= ? UNION ALL"
    f" SELECT {_COLUMNS} FROM (SELECT * FROM entity_history WHERE tree_key = ? AND since <= ?"
    " ORDER BY since DESC LIMIT 1) AS last WHERE until > ?"
)
_WITH_DOCUMENT: Final = (
    f"SELECT found.*, document.bytes FROM ({_SELECT_ENTITY}) AS found LEFT JOIN document ON document.sha256 ="
    " found.document"
)


class PastDatabase(ReadOnlyDatabase):
    """A `Database` for reading whose table `entity` is that of a position. Other tables are in their current state."""

    def __init__(self, db: Database, position: int) -> None:
        super().__init__(db)
        self._db = db
        self._past_entity_sql = _PAST_ENTITY_TABLE.format(db.table_prefix)
        self._position = position

    def entity(self, tree_key: str) -> Any:
        """The columns of an entity's row, or None. Cost: two lookups, however often it has changed."""
        position = self._position
        return self._db.look_up(_SELECT_ENTITY, (tree_key, position, tree_key, position, position))

    def entity_with_document(self, tree_key: str) -> Any:
        """The same columns and the bytes of its document, None if it has none."""
        position = self._position
        return self._db.look_up(_WITH_DOCUMENT, (tree_key, position, tree_key, position, position))

    def one(self, sql: str, values: Values = ()) -> Any:
        return self._db.one(self._past_entity_sql + sql, self._with_position(values))

    def look_up(self, sql: str, values: Sequence[str | int] = ()) -> Any:
        return self.one(sql, values)

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        return self._db.all(self._past_entity_sql + sql, self._with_position(values))

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        return self._db.stream(self._past_entity_sql + sql, self._with_position(values))

    def _with_position(self, values: Values) -> Values:
        return (self._position, self._position, self._position, *values)

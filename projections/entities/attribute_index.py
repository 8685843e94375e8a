"""The attribute index, which follows the log some events behind the rows.

It has a row for each leaf: the number of its path, its value and the id key of its entity, in this order. So the
entities with a value, or with a range of values, are a range of the table.

The leaves of one entity are in many places of the index, each on a page of its own, and a commit writes every page that
it changes. Many entities share these pages, so the index is updated for a few hundred events at once. Until then,
filters and sort orders take the entities that these events changed from their rows
(`annals.projections.entities.changed_rows`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from annals.commands.store.database import sql
from annals.domain.values.json_text import loads_trusted
from annals.projections.database.drivers import Database
from annals.projections.entities.changed_rows import changed_keys, next_rows, rows_as_of
from annals.projections.entities.index_paths import IndexPaths, find_paths
from annals.projections.entities.index_values import EMPTY_VALUE
from annals.projections.entities.leaves import OMITTED_LEAVES, OMITTED_PATH, UNINDEXED_TYPES, leaves
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.tables import ReadModelTables
from annals.projections.log.positions import find_position, save_position

#: The maximum number of events that the index is behind: few enough for a query to take them from the rows.
MAX_BEHIND: Final = 256


def index_name(projection_name: str) -> str:
    """The name of the position of a projection's index."""
    return f"{projection_name}.index"


#: The name of the position of the index that readers use.
INDEX_NAME: Final = index_name("entities")


class AttributeIndex:
    """The index of a set of tables. name: of its projection.

    max_leaves: the maximum number of indexed leaves per entity. Tables may hold entities indexed under other limits.
    """

    def __init__(self, name: str, tables: ReadModelTables, max_leaves: int) -> None:
        self._name = index_name(name)
        self._tables = tables
        self._max_leaves = max_leaves
        self._known_position = 0  # another process may have written more, and what this one wrote may be undone

    def is_far_behind(self, db: Database, position: int) -> bool:
        """Whether more than `MAX_BEHIND` events up to a position are missing. Cost: a look-up in as many events."""
        if not 0 <= position - self._known_position <= MAX_BEHIND:
            self._known_position = self.position(db) or 0
        return position - self._known_position > MAX_BEHIND

    def catch_up(self, db: Database, position: int) -> None:
        """Writes the changes of all events up to a position, which must be that of the rows."""
        if self.add_events(db, position):
            self.save_position(db, position)

    def add_events(self, db: Database, position: int) -> bool:
        """`catch_up`, except that the caller has to save a position; returns whether there were events."""
        start = self.position(db) or 0
        if start >= position:
            return False
        for keys in sql.chunks(changed_keys(db, start, position)):
            self._replace_leaves(db, keys, start)
        return True

    def position(self, db: Database) -> int | None:
        """The position of the last event in the index; None if none is stored."""
        return find_position(db, self._name)

    def save_position(self, db: Database, position: int) -> None:
        """Sets the position, in the transaction of the writes up to it."""
        save_position(db, self._name, position)

    def leaves(self, type: str, attributes: Mapping[str, object]) -> dict[str, bytes]:
        """The leaves of an entity that the index is to have."""
        return {} if type in UNINDEXED_TYPES else leaves(attributes, self._max_leaves)

    def add_rows(self, db: Database, after: str, limit: int) -> str | None:
        """Adds the leaves of the next entities by tree key, none of which the index has.

        Returns the last of their keys; None if there are no more.
        """
        changes, last_key = LeafChanges(), None
        for row in next_rows(db, after, limit, self._tables):
            last_key = row.tree_key
            changes.add(row.type, row.id_key, self.leaves(row.type, loads_trusted(row.attributes)))
        changes.write(db, self._tables)
        return last_key

    def _replace_leaves(self, db: Database, keys: Sequence[str], start: int) -> None:
        """Replaces the leaves as of a start position by the current ones."""
        changes = LeafChanges()
        for row in rows_as_of(db, keys, start, self._tables).values():
            changes.remove(row)
        for row in rows_as_of(db, keys, None, self._tables).values():
            changes.add(row.type, row.id_key, self.leaves(row.type, loads_trusted(row.attributes)))
        changes.write(db, self._tables)


#: A type and an id key.
_Entity = tuple[str, str]
#: Paths and values of leaves.
_LeafItems = Collection[tuple[str, bytes]]


class LeafChanges:
    """Leaves to insert and to delete: those of rows that are no longer current, and those of new rows."""

    def __init__(self) -> None:
        self._old_rows: list[EntityRow] = []
        self._new_leaves: dict[_Entity, Mapping[str, bytes]] = {}

    def remove(self, row: EntityRow) -> None:
        """Adds a row whose leaves the index has."""
        if row.type not in UNINDEXED_TYPES:
            self._old_rows.append(row)

    def add(self, type: str, id_key: str, leaves: Mapping[str, bytes]) -> None:
        """Adds the leaves of an entity that the index is to have."""
        self._new_leaves[type, id_key] = leaves

    def write(self, db: Database, tables: ReadModelTables) -> None:
        """Writes the difference, in the order of the primary key: SQLite then changes each page once."""
        old_leaves = self._old_leaves(db, tables)
        removed = {entity: _difference(leaves, self._new_leaves.get(entity)) for entity, leaves in old_leaves.items()}
        added = {entity: _difference(leaves, old_leaves.get(entity)) for entity, leaves in self._new_leaves.items()}
        paths: dict[str, set[str]] = {}
        for (type, _), changed_leaves in (*removed.items(), *added.items()):
            paths.setdefault(type, set()).update(path for path, _ in changed_leaves)
        numbers = IndexPaths(tables).numbers(db, paths)
        for write, changes in ((db.delete, removed), (db.insert, added)):
            rows = [
                (numbers[type][path], value, key) for (type, key), leaves in changes.items() for path, value in leaves
            ]
            if rows:
                write(tables.attribute, sorted(rows))

    def _old_leaves(self, db: Database, tables: ReadModelTables) -> dict[_Entity, Mapping[str, bytes]]:
        omitted = self._omitted_entities(db, tables)
        return {
            (row.type, row.id_key): OMITTED_LEAVES
            if (row.type, row.id_key) in omitted
            else leaves(loads_trusted(row.attributes))
            for row in self._old_rows
        }

    def _omitted_entities(self, db: Database, tables: ReadModelTables) -> set[_Entity]:
        """Those that the index omits."""
        types = {row.type for row in self._old_rows}
        statement = (
            f"SELECT id_key FROM {tables.attribute.name} WHERE path = ? AND value = ? AND {db.in_list('id_key')}"
        )
        return {
            (type, key)
            for type in types
            for number, _ in find_paths(db, type, [OMITTED_PATH], tables.path.name)
            for keys in (db.list_parameter(row.id_key for row in self._old_rows if row.type == type),)
            for (key,) in db.all(statement, (number, EMPTY_VALUE, keys))
        }


def _difference(leaves: Mapping[str, bytes], others: Mapping[str, bytes] | None) -> _LeafItems:
    """The leaves that are not among the others of the same entity."""
    return leaves.items() - others.items() if others else leaves.items()

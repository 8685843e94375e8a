"""The attribute index, which follows the log some events behind the rows.

The leaves of one entity are in many places of the index, each on a page of its own, and a commit writes every page that
it changes. Many entities share these pages, so the index takes in a few hundred events at once. Until then, filters and
sort orders take the entities that these events changed from their rows (`annals.projections.entities.changed_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from annals.commands.store import sql
from annals.domain.values.json_text import loads_trusted
from annals.projections.database.drivers import MIN_COPY_ROWS, Database, Values
from annals.projections.entities.changed_rows import changed_keys, rows_as_of
from annals.projections.entities.leaves import OMITTED_PATH, PRESENT_LEAF, UNINDEXED_TYPES, Leaf, leaves
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
        self._known_position = 0  # another process may have taken in more

    def is_far_behind(self, position: int) -> bool:
        """Whether more than `MAX_BEHIND` events up to a position may be missing."""
        return position - self._known_position > MAX_BEHIND

    def catch_up(self, db: Database, position: int) -> None:
        """Takes in all events up to a position, which must be that of the rows."""
        start = self.position(db) or 0
        if start < position:
            for keys in sql.chunks(changed_keys(db, start)):
                self._take_in(db, keys, start)
            self.save_position(db, position)

    def position(self, db: Database) -> int | None:
        """The position of the last event in the index; None if none is stored."""
        position = find_position(db, self._name)
        self._known_position = position or 0
        return position

    def save_position(self, db: Database, position: int) -> None:
        """Sets the position, in the transaction of the writes up to it."""
        save_position(db, self._name, position)
        self._known_position = position

    def omitted_keys(self, db: Database, keys: Iterable[str]) -> frozenset[str]:
        """Those of some entities that the index omits."""
        statement = f"SELECT tree_key FROM {self._tables.attribute.name} WHERE path = ? AND {db.in_list('tree_key')}"
        return frozenset(key for (key,) in db.all(statement, (OMITTED_PATH, db.list_parameter(keys))))

    def leaves(self, type: str, attributes: Mapping[str, object]) -> dict[str, Leaf]:
        """The leaves of an entity that the index is to have."""
        return {} if type in UNINDEXED_TYPES else leaves(attributes, self._max_leaves)

    def _take_in(self, db: Database, keys: Sequence[str], start: int) -> None:
        """Replaces the leaves as of a start position by the current ones."""
        old_rows = rows_as_of(db, keys, start, self._tables)
        new_rows = rows_as_of(db, keys, None, self._tables)
        changes = LeafChanges(self.omitted_keys(db, old_rows) if old_rows else frozenset())
        for key in keys:
            new_row = new_rows.get(key)
            new_leaves = self.leaves(new_row.type, loads_trusted(new_row.attributes)) if new_row else {}
            changes.add(key, new_row.type if new_row else "", old_rows.get(key), new_leaves)
        changes.write(db, self._tables)


class LeafChanges:
    """Leaves to insert, to update and to delete. omitted_keys: keys of entities that the index omits."""

    def __init__(self, omitted_keys: frozenset[str]) -> None:
        self._omitted_keys = omitted_keys
        self._inserted: list[Values] = []
        self._updated: list[Values] = []
        self._deleted: list[Values] = []
        self._emptied: list[Values] = []  # keys of entities that have no leaves any more

    def add(self, key: str, type: str, old_row: EntityRow | None, new_leaves: Mapping[str, Leaf]) -> None:
        """Adds the change of one entity. old_row: the one whose leaves the index has."""
        if not new_leaves:
            self._emptied += [(key,)] if old_row else []
            return
        old_leaves = self._indexed_leaves(old_row) if old_row else {}
        rows = [
            # In the order of the primary key: SQLite then appends to one page of the table.
            (key, path, type, *new_leaves[path])
            for path in sorted(new_leaves)
            if old_leaves.get(path) != new_leaves[path]
        ]
        if old_row:
            self._updated += rows
            self._deleted += [(key, path) for path in old_leaves if path not in new_leaves]
        else:
            self._inserted += rows

    def write(self, db: Database, tables: ReadModelTables) -> None:
        """Writes all changes."""
        if self._updated and len(self._inserted) < MIN_COPY_ROWS:
            self._updated, self._inserted = [*self._updated, *self._inserted], []
        for write, rows in (
            (db.delete, self._emptied),
            (db.delete, self._deleted),
            (db.insert, self._inserted),
            (db.upsert, self._updated),
        ):
            if rows:
                write(tables.attribute, rows)

    def _indexed_leaves(self, row: EntityRow) -> dict[str, Leaf]:
        if row.tree_key in self._omitted_keys:
            return {OMITTED_PATH: PRESENT_LEAF}
        return {} if row.type in UNINDEXED_TYPES else leaves(loads_trusted(row.attributes))

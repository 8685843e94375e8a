"""The inline projection: applies events to the read model, in the transaction that appends them.

For each stream it lists the rows before, between and after its events. The last row is the current one; all others go
to the history. Rows of new entities are inserted without looking for existing ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import Connection

from domain.compat.publications import LiveVersion, Publication, affects_publications, fold_publications
from domain.registry.events import EntityCreated, EntityDeleted, EntityEvent
from domain.values import json_text
from domain.values import xid as xids
from projections.database import drivers
from projections.database.drivers import Database, Values
from projections.entities.leaves import MAX_LEAVES, OMITTED_PATH, PRESENT_LEAF, UNINDEXED_TYPES, Leaf, leaves
from projections.entities.publications import retained_publications
from projections.entities.rows import EntityRow, publication_row, row, stored_row
from projections.entities.tables import ReadModelTables, tables
from projections.log.positions import delete_position, save_position

PositionedEvents = Sequence[tuple[int, EntityEvent]]

#: The number of events applied together: enough for bulk statements, few enough to hold an import's leaves in memory.
BATCH_EVENTS: Final = 2000


class EntityProjection:
    """The REST read model. name: under which its position is stored; into: the set of tables that it writes.

    most: the maximum number of indexed leaves per entity. Tables may hold entities written under other limits.
    """

    name = "entities"

    def __init__(self, name: str = name, into: ReadModelTables | None = None, most: int = MAX_LEAVES) -> None:
        self._position = name
        self._max_leaves = most
        self._tables = into or tables()

    def create(self, connection: Connection) -> None:
        """Creates the tables again unless all exist as required; new tables start from the beginning of the log."""
        if not self._tables.exist(connection):
            self._tables.metadata.drop_all(connection)
            self._tables.create(connection)
            delete_position(drivers.database_of(connection), self._position)

    def apply(self, connection: Connection, recorded: PositionedEvents) -> None:
        """Applies the events of whole interactions, in log order; entities outside the tree have no rows."""
        if not recorded:
            return
        db = drivers.database_of(connection)
        inside = [each for each in recorded if not xids.is_outside_tree(each[1].xid)]
        for start in range(0, len(inside), BATCH_EVENTS):
            self._apply(db, inside[start : start + BATCH_EVENTS])
        save_position(db, self._position, recorded[-1][0])

    def _apply(self, db: Database, recorded: PositionedEvents) -> None:
        before, omitted = self._before(db, recorded)
        work, streams = RowChanges(omitted, self._max_leaves), _by_stream(recorded)
        for key, events in streams.items():
            work.add(before.get(key), events)
        published = {
            key: events for key, events in streams.items() if any(affects_publications(event) for _, event in events)
        }
        if published:
            # A Version that has earlier events but no row was either pruned and kept, or deleted for good.
            dead = [key for key, events in published.items() if key not in before and events[0][1].revision > 1]
            kept = retained_publications(db, self._tables.published.name, dead)
            for key, events in published.items():
                work.publish(before.get(key), kept.get(key), events)
        self._write(db, work)

    def _before(self, db: Database, recorded: PositionedEvents) -> tuple[dict[str, EntityRow], frozenset[str]]:
        """The existing rows by key, and the keys of entities that the index omits."""
        known: set[str] = set()
        asked: list[str] = []
        for _, event in recorded:
            if event.stream not in known and not isinstance(event, EntityCreated):
                asked.append(xids.tree_key(event.xid))
            known.add(event.stream)
        if not asked:
            return {}, frozenset()
        own = self._tables
        omitted = f"EXISTS (SELECT 1 FROM {own.attribute.name} AS a WHERE a.tree_key = e.tree_key AND a.path = ?)"
        named = f"SELECT e.*, {omitted} FROM {own.entity.name} AS e WHERE {db.in_list('e.tree_key')}"
        found = db.all(named, [OMITTED_PATH, db.list_parameter(asked)])
        rows = {values[0]: stored_row(values[:-1]) for values in found}
        return rows, frozenset(values[0] for values in found if values[-1])

    def _write(self, db: Database, work: RowChanges) -> None:
        own = self._tables
        for write, table, rows in (
            (db.insert, own.history, work.history),
            (db.delete, own.attribute, work.deleted_leaves),
            (db.delete, own.entity, work.deleted),
            (db.insert, own.entity, work.inserted),
            (db.upsert, own.entity, work.updated),
            (db.insert, own.attribute, work.inserted_leaves),
            (db.upsert, own.attribute, work.updated_leaves),
            (db.upsert, own.published, work.publications),
        ):
            if rows:
                write(table, rows)


class RowChanges:
    """The row changes of some events, grouped by the statement that writes them.

    omitted: keys of entities that the index omits. most: the maximum number of indexed leaves per entity.
    """

    def __init__(self, omitted: Collection[str], most: int) -> None:
        self._omitted = omitted
        self._max_leaves = most
        self.inserted: list[Values] = []
        self.updated: list[Values] = []
        self.deleted: list[Values] = []
        self.history: list[Values] = []
        self.inserted_leaves: list[Values] = []
        self.updated_leaves: list[Values] = []
        self.deleted_leaves: list[Values] = []
        self.publications: list[Values] = []

    def add(self, before: EntityRow | None, events: PositionedEvents) -> None:
        """Adds the events of one stream. before: the existing row."""
        images = [before, *(None if isinstance(event, EntityDeleted) else row(event, at) for at, event in events)]
        ends = [position for position, _ in events]
        self.history += [(*old, until) for old, until in zip(images, ends, strict=False) if old]
        after, last = images[-1], events[-1][1]
        if before is None and after is not None:
            self.inserted.append(after)
            self.inserted_leaves += _rows(after, self._leaves(last))
        elif before is not None and after is not None:
            self.updated.append(after)
            self._add_changes(after, self._stored_leaves(before), self._leaves(last))
        elif before is not None:
            self.deleted.append((before.tree_key,))
            self.deleted_leaves += [(before.tree_key, path) for path in self._stored_leaves(before)]

    def publish(self, before: EntityRow | None, kept: Publication | None, events: PositionedEvents) -> None:
        """Adds the publications that a Version's events change for the legacy APIs.

        kept: its publication, if it is kept.
        """
        living = LiveVersion(before.since, json_text.loads_trusted(before.private), before.born) if before else None
        self.publications += map(publication_row, fold_publications(events, living, kept))

    def _add_changes(self, after: EntityRow, old: dict[str, Leaf], new: dict[str, Leaf]) -> None:
        self.deleted_leaves += [(after.tree_key, path) for path in old if path not in new]
        self.updated_leaves += _rows(after, {path: leaf for path, leaf in new.items() if old.get(path) != leaf})

    def _leaves(self, event: EntityEvent) -> dict[str, Leaf]:
        return {} if event.type in UNINDEXED_TYPES else leaves(event.attributes, self._max_leaves)

    def _stored_leaves(self, old: EntityRow) -> dict[str, Leaf]:
        if old.tree_key in self._omitted:
            return {OMITTED_PATH: PRESENT_LEAF}
        return {} if old.type in UNINDEXED_TYPES else leaves(json_text.loads_trusted(old.attributes))


def _by_stream(recorded: PositionedEvents) -> dict[str, list[tuple[int, EntityEvent]]]:
    streams: dict[str, list[tuple[int, EntityEvent]]] = {}
    for position, event in recorded:
        streams.setdefault(xids.tree_key(event.xid), []).append((position, event))
    return streams


def _rows(owner: EntityRow, found: dict[str, Leaf]) -> list[Values]:
    # In the order of the primary key: SQLite then appends to one page of the table, which saves a sixth of an import.
    key, type_ = owner.tree_key, owner.type
    return [(key, path, type_, *found[path]) for path in sorted(found)]

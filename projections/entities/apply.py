"""The inline projection: applies events to the read model, in the transaction that appends them.

For each stream it lists the rows before, between and after its events. The last row is the current one; all others go
to the history. Rows of new entities are inserted without looking for existing ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from sqlalchemy import Connection

from annals.domain.compat.publications import LiveVersion, Publication, affects_publications, fold_publications
from annals.domain.decisions.phases import PhaseCounter, ReportPhase
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent
from annals.domain.values import json_text
from annals.domain.values import xid as xids
from annals.projections.database import drivers
from annals.projections.database.drivers import MIN_COPY_ROWS, Database, Values
from annals.projections.entities.leaves import MAX_LEAVES, OMITTED_PATH, PRESENT_LEAF, UNINDEXED_TYPES, Leaf, leaves
from annals.projections.entities.publications import retained_publications
from annals.projections.entities.rows import EntityRow, entity_row, publication_row, stored_row
from annals.projections.entities.tables import ReadModelTables, tables
from annals.projections.log.positions import delete_position, save_position

PositionedEvents = Sequence[tuple[int, EntityEvent]]

#: The number of events applied together: enough for bulk statements, few enough to hold an import's leaves in memory.
BATCH_EVENTS: Final = 2000


class EntityProjection:
    """The REST read model. name: under which its position is stored; target_tables: the set of tables that it writes.

    max_leaves: the maximum number of indexed leaves per entity. Tables may hold entities written under other limits.
    """

    name = "entities"

    def __init__(
        self, name: str = name, target_tables: ReadModelTables | None = None, max_leaves: int = MAX_LEAVES
    ) -> None:
        self._position_name = name
        self._max_leaves = max_leaves
        self._tables = target_tables or tables()

    def create(self, connection: Connection) -> None:
        """Creates the tables again unless all exist as required; new tables start from the beginning of the log."""
        if not self._tables.exist(connection):
            self._tables.metadata.drop_all(connection)
            self._tables.create(connection)
            delete_position(drivers.database_of(connection), self._position_name)

    def apply(
        self, connection: Connection, recorded: PositionedEvents, report_phase: ReportPhase | None = None
    ) -> None:
        """Applies the events of whole interactions, in log order; entities outside the tree have no rows.

        report_phase: receives the number of events that are applied.
        """
        if not recorded:
            return
        db = drivers.database_of(connection)
        tree_events = [
            positioned_event for positioned_event in recorded if not xids.is_outside_tree(positioned_event[1].xid)
        ]
        counter = PhaseCounter(report_phase, "indexed", len(tree_events))
        for start in range(0, len(tree_events), BATCH_EVENTS):
            batch = tree_events[start : start + BATCH_EVENTS]
            self._apply_batch(db, batch)
            counter.add(len(batch))
        save_position(db, self._position_name, recorded[-1][0])

    def _apply_batch(self, db: Database, positioned_events: PositionedEvents) -> None:
        previous_rows, omitted_keys = self._read_previous(db, positioned_events)
        changes, streams = RowChanges(omitted_keys, self._max_leaves), _by_stream(positioned_events)
        for key, events in streams.items():
            changes.add(previous_rows.get(key), events)
        publication_events = {
            key: events for key, events in streams.items() if any(affects_publications(event) for _, event in events)
        }
        if publication_events:
            # A Version that has earlier events but no row was either pruned and retained, or deleted for good.
            rowless_keys = [
                key
                for key, events in publication_events.items()
                if key not in previous_rows and events[0][1].revision > 1
            ]
            retained = retained_publications(db, self._tables.published.name, rowless_keys)
            for key, events in publication_events.items():
                changes.add_publications(previous_rows.get(key), retained.get(key), events)
        self._write_changes(db, changes)

    def _read_previous(
        self, db: Database, positioned_events: PositionedEvents
    ) -> tuple[dict[str, EntityRow], frozenset[str]]:
        """The existing rows by key, and the keys of entities that the index omits."""
        seen_streams: set[str] = set()
        keys: list[str] = []
        for _, event in positioned_events:
            if event.stream not in seen_streams and not isinstance(event, EntityCreated):
                keys.append(xids.tree_key(event.xid))
            seen_streams.add(event.stream)
        if not keys:
            return {}, frozenset()
        target_tables = self._tables
        omission_condition = (
            f"EXISTS (SELECT 1 FROM {target_tables.attribute.name} AS a WHERE a.tree_key = e.tree_key AND a.path = ?)"
        )
        sql = f"SELECT e.*, {omission_condition} FROM {target_tables.entity.name} AS e WHERE {db.in_list('e.tree_key')}"
        rows_with_omission = db.all(sql, [OMITTED_PATH, db.list_parameter(keys)])
        rows = {values[0]: stored_row(values[:-1]) for values in rows_with_omission}
        return rows, frozenset(values[0] for values in rows_with_omission if values[-1])

    def _write_changes(self, db: Database, changes: RowChanges) -> None:
        target_tables = self._tables
        changes.merge_small()
        for write, table, rows in (
            (db.insert, target_tables.history, changes.history),
            (db.delete, target_tables.attribute, changes.deleted_leaves),
            (db.delete, target_tables.entity, changes.deleted),
            (db.insert, target_tables.entity, changes.inserted),
            (db.upsert, target_tables.entity, changes.updated),
            (db.insert, target_tables.attribute, changes.inserted_leaves),
            (db.upsert, target_tables.attribute, changes.updated_leaves),
            (db.upsert, target_tables.published, changes.publications),
        ):
            if rows:
                write(table, rows)


class RowChanges:
    """The row changes of some events, grouped by the statement that writes them.

    omitted_keys: keys of entities that the index omits. max_leaves: the maximum number of indexed leaves per entity.
    """

    def __init__(self, omitted_keys: Collection[str], max_leaves: int) -> None:
        self._omitted_keys = omitted_keys
        self._max_leaves = max_leaves
        self.inserted: list[Values] = []
        self.updated: list[Values] = []
        self.deleted: list[Values] = []
        self.history: list[Values] = []
        self.inserted_leaves: list[Values] = []
        self.updated_leaves: list[Values] = []
        self.deleted_leaves: list[Values] = []
        self.publications: list[Values] = []

    def add(self, previous: EntityRow | None, events: PositionedEvents) -> None:
        """Adds the events of one stream. previous: the existing row."""
        row_versions = [
            previous,
            *(
                None if isinstance(event, EntityDeleted) else entity_row(event, event_position)
                for event_position, event in events
            ),
        ]
        end_positions = [position for position, _ in events]
        self.history += [
            (*replaced_row, until)
            for replaced_row, until in zip(row_versions, end_positions, strict=False)
            if replaced_row
        ]
        current, last_event = row_versions[-1], events[-1][1]
        if previous is None and current is not None:
            self.inserted.append(current)
            self.inserted_leaves += _leaf_rows(current, self._leaves(last_event))
        elif previous is not None and current is not None:
            self.updated.append(current)
            self._add_changes(current, self._stored_leaves(previous), self._leaves(last_event))
        elif previous is not None:
            self.deleted.append((previous.tree_key,))
            self.deleted_leaves += [(previous.tree_key, path) for path in self._stored_leaves(previous)]

    def add_publications(
        self, previous: EntityRow | None, retained: Publication | None, events: PositionedEvents
    ) -> None:
        """Adds the publications that a Version's events change for the legacy APIs.

        retained: its publication, if it is a retained Version.
        """
        live_version = (
            LiveVersion(previous.since, json_text.loads_trusted(previous.private), previous.born) if previous else None
        )
        self.publications += map(publication_row, fold_publications(events, live_version, retained))

    def merge_small(self) -> None:
        """Makes one statement of two where rows are few, because an insertion saves only the look-ups of many rows."""
        if self.updated and len(self.inserted) < MIN_COPY_ROWS:
            self.updated, self.inserted = [*self.updated, *self.inserted], []
        if self.updated_leaves and len(self.inserted_leaves) < MIN_COPY_ROWS:
            self.updated_leaves, self.inserted_leaves = [*self.updated_leaves, *self.inserted_leaves], []

    def _add_changes(self, current: EntityRow, old_leaves: dict[str, Leaf], new_leaves: dict[str, Leaf]) -> None:
        self.deleted_leaves += [(current.tree_key, path) for path in old_leaves if path not in new_leaves]
        self.updated_leaves += _leaf_rows(
            current, {path: leaf for path, leaf in new_leaves.items() if old_leaves.get(path) != leaf}
        )

    def _leaves(self, event: EntityEvent) -> dict[str, Leaf]:
        return {} if event.type in UNINDEXED_TYPES else leaves(event.attributes, self._max_leaves)

    def _stored_leaves(self, stored: EntityRow) -> dict[str, Leaf]:
        if stored.tree_key in self._omitted_keys:
            return {OMITTED_PATH: PRESENT_LEAF}
        return {} if stored.type in UNINDEXED_TYPES else leaves(json_text.loads_trusted(stored.attributes))


def _by_stream(positioned_events: PositionedEvents) -> dict[str, list[tuple[int, EntityEvent]]]:
    streams: dict[str, list[tuple[int, EntityEvent]]] = {}
    for position, event in positioned_events:
        streams.setdefault(xids.tree_key(event.xid), []).append((position, event))
    return streams


def _leaf_rows(entity: EntityRow, leaves_by_path: dict[str, Leaf]) -> list[Values]:
    # In the order of the primary key: SQLite then appends to one page of the table, which saves a sixth of an import.
    key, type_ = entity.tree_key, entity.type
    return [(key, path, type_, *leaves_by_path[path]) for path in sorted(leaves_by_path)]

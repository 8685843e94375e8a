"""The inline projection: applies events to the read model, in the transaction that appends them.

For each stream it lists the rows before, between and after its events. The last row is the current one; all others go
to the history. Rows of new entities are inserted without looking for existing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from annals.commands.store.stream_head import StreamHead
from annals.domain.compat.legacy_apis import FACADE
from annals.domain.compat.publications import LiveVersion, Publication, affects_publications, fold_publications
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.confluent.schema_versions import SchemaVersion, affects_schemas, fold_schema_versions
from annals.domain.decisions.phases import PhaseCounter, ReportPhase
from annals.domain.registry.entities import xref_target
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent
from annals.domain.values import json_text
from annals.domain.values import xid as xids
from annals.projections.database import drivers
from annals.projections.database.drivers import MIN_COPY_ROWS, Database, Values
from annals.projections.entities.attribute_index import MAX_BEHIND, AttributeIndex, LeafChanges
from annals.projections.entities.changed_rows import rows_as_of
from annals.projections.entities.id_keys import id_key
from annals.projections.entities.leaf_removal import KeysByType, remove_ranges
from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.entities.publications import retained_publications
from annals.projections.entities.references import all_reference_rows
from annals.projections.entities.rows import EntityRow, entity_row, publication_row, row_values
from annals.projections.entities.schema_version_rows import schema_reference_rows, schema_version_row
from annals.projections.entities.schema_versions import stored_schema_rows
from annals.projections.entities.tables import ReadModelTables, tables
from annals.projections.entities.xref import xref_of
from annals.projections.log.positions import delete_position, read_position, save_position

PositionedEvents = Sequence[tuple[int, EntityEvent]]

#: The number of events applied together: enough for bulk statements, few enough to hold an import's leaves in memory.
BATCH_EVENTS: Final = 2000


class EntityProjection:
    """The REST read model.

    position_name: under which its position is stored; a rebuild has its own, next to that of the current read model.
    target_tables: the set of tables that it writes. max_leaves: see `AttributeIndex`. max_behind: the maximum number of
    events that the attribute index is behind; None if it stays behind until `index_rows` has filled it.
    """

    name = "entities"

    def __init__(
        self,
        position_name: str = name,
        target_tables: ReadModelTables | None = None,
        max_leaves: int = MAX_LEAVES,
        max_behind: int | None = MAX_BEHIND,
    ) -> None:
        self._position_name = position_name
        self._tables = target_tables or tables()
        self._max_behind = max_behind
        self._index = AttributeIndex(position_name, self._tables, max_leaves)

    def create(self, connection: Connection) -> None:
        """Creates the tables again unless all exist as required; new tables start from the beginning of the log."""
        db = drivers.database_of(connection)
        if not self._tables.exist(connection):
            self._tables.metadata.drop_all(connection)
            self._tables.create(connection)
            delete_position(db, self._position_name)
            self._index.save_position(db, 0)

    def apply(
        self,
        connection: Connection,
        recorded: PositionedEvents,
        report_phase: ReportPhase | None = None,
        replaced: Mapping[str, StreamHead] | None = None,
    ) -> None:
        """Applies events, in log order; entities outside the tree have no rows.

        report_phase: receives the number of events that are applied. replaced: the ends of their streams before the
        events, by tree key, if known.
        """
        if not recorded:
            return
        db, position = drivers.database_of(connection), recorded[-1][0]
        events = [
            positioned_event for positioned_event in recorded if not xids.is_outside_tree(positioned_event[1].xid)
        ]
        max_behind = self._max_behind
        indexes_now = max_behind is not None and len(recorded) > max_behind  # because their leaves are in memory
        if indexes_now:
            self._index.add_events(db, recorded[0][0] - 1)  # one statement cannot save two positions
        removed_keys = remove_ranges(db, self._tables, events) if indexes_now else None
        counter = PhaseCounter(report_phase, "indexed", len(events))
        known_heads = dict(replaced or {})
        has_xrefs = False
        for start in range(0, len(events), BATCH_EVENTS):
            batch = events[start : start + BATCH_EVENTS]
            has_xrefs |= self._apply_batch(db, batch, known_heads, removed_keys)
            counter.add(len(batch))
        save_position(db, self._position_name, position)
        if indexes_now:
            self._index.save_position(db, position)
        elif max_behind is not None and (has_xrefs or self._index.is_far_behind(db, position)):
            # Reads need xrefs in the index.
            self._index.catch_up(db, position)

    def catch_up(self, connection: Connection) -> None:
        """Brings the attribute index to the position of the rows."""
        db = drivers.database_of(connection)
        self._index.catch_up(db, read_position(db, self._position_name))

    def index_rows(self, connection: Connection, after: str, limit: int) -> str | None:
        """Adds the leaves of the next rows to an index that has none of them; returns the last tree key.

        after: the tree key before the first. The end returns None and gives the index the position of the rows.
        """
        db = drivers.database_of(connection)
        last_key = self._index.add_rows(db, after, limit)
        if last_key is None:
            self._index.save_position(db, read_position(db, self._position_name))
        return last_key

    def _apply_batch(
        self,
        db: Database,
        events: PositionedEvents,
        known_heads: dict[str, StreamHead],
        removed_keys: KeysByType | None,
    ) -> bool:
        """Applies some events; returns whether any of them adds, changes or removes an xref.

        removed_keys: of the entities without leaves in the index; None if the index follows later.
        """
        changes, streams = RowChanges(), _by_stream(events)
        previous_rows = self._previous_rows(db, streams, known_heads)
        for key, stream_events in streams.items():
            changes.add(previous_rows.get(key), stream_events)
        self._add_publications(db, changes, streams, previous_rows)
        self._add_schema_versions(db, changes, streams, previous_rows)
        changes.write(db, self._tables)
        if removed_keys is not None:
            self._write_leaves(db, streams, previous_rows, removed_keys)
        return any(xref_target(event) for _, event in events) or any(map(xref_of, previous_rows.values()))

    def _add_publications(
        self,
        db: Database,
        changes: RowChanges,
        streams: Mapping[str, PositionedEvents],
        previous_rows: Mapping[str, EntityRow],
    ) -> None:
        publication_events = {
            key: events
            for key, events in streams.items()
            if any(affects_publications(event) for _, event in events)
            and not _is_deletion_only(events, previous_rows.get(key))
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

    def _add_schema_versions(
        self,
        db: Database,
        changes: RowChanges,
        streams: Mapping[str, PositionedEvents],
        previous_rows: Mapping[str, EntityRow],
    ) -> None:
        schema_events = {
            key: events
            for key, events in streams.items()
            if any(affects_schemas(event, _has_facts(previous_rows.get(key))) for _, event in events)
        }
        if schema_events:
            known_keys = [key for key, events in schema_events.items() if events[0][1].revision > 1]
            stored = stored_schema_rows(db, self._tables.schema_version.name, known_keys)
            for key, events in schema_events.items():
                changes.add_schema_versions(fold_schema_versions(events, stored.get(key, ())))

    def _previous_rows(
        self, db: Database, streams: Mapping[str, PositionedEvents], known_heads: dict[str, StreamHead]
    ) -> dict[str, EntityRow]:
        """The rows before some events, by key. known_heads: ends of streams before any event; used ones are removed."""
        rows: dict[str, EntityRow] = {}
        unknown_keys: list[str] = []
        for key, events in streams.items():
            head = known_heads.pop(key, None)
            if head is None:
                if not isinstance(events[0][1], EntityCreated):
                    unknown_keys.append(key)
            elif head.event is not None:
                rows[key] = entity_row(head.event, head.position)
        return rows | rows_as_of(db, unknown_keys, None, self._tables) if unknown_keys else rows

    def _write_leaves(
        self,
        db: Database,
        streams: Mapping[str, PositionedEvents],
        previous_rows: Mapping[str, EntityRow],
        removed_keys: KeysByType,
    ) -> None:
        changes = LeafChanges()
        for row in previous_rows.values():
            if row.id_key not in removed_keys.get(row.type, ()):
                changes.remove(row)
        for key, events in streams.items():
            event = events[-1][1]
            if not isinstance(event, EntityDeleted):
                changes.add(event.type, id_key(key), self._index.leaves(event.type, event.attributes))
        changes.write(db, self._tables)


class RowChanges:
    """The row changes of some events, grouped by the statement that writes them."""

    def __init__(self) -> None:
        self._inserted: list[Values] = []
        self._updated: list[Values] = []
        self._deleted: list[Values] = []
        self._history: list[Values] = []
        self._publications: list[Values] = []
        self._schema_versions: list[Values] = []
        self._schema_references: list[Values] = []
        self._references: list[Values] = []

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
        replaced_rows = [
            (replaced_row, until)
            for replaced_row, until in zip(row_versions, end_positions, strict=False)
            if replaced_row
        ]
        self._history += [(*row_values(replaced_row), until) for replaced_row, until in replaced_rows]
        current = row_versions[-1]
        self._references += all_reference_rows([*replaced_rows, *([(current, None)] if current else [])])
        if current is not None:
            (self._inserted if previous is None else self._updated).append(row_values(current))
        elif previous is not None:
            self._deleted.append((previous.tree_key,))

    def add_publications(
        self, previous: EntityRow | None, retained: Publication | None, events: PositionedEvents
    ) -> None:
        """Adds the publications that a Version's events change for the legacy APIs.

        retained: its publication, if it is a retained Version.
        """
        live_version = (
            LiveVersion(previous.since, json_text.loads_trusted(previous.private), previous.born) if previous else None
        )
        self._publications += map(publication_row, fold_publications(events, live_version, retained))

    def add_schema_versions(self, versions: Sequence[SchemaVersion]) -> None:
        """Adds the rows of Confluent's API that a Version's events add or change."""
        for version in versions:
            self._schema_versions.append(schema_version_row(version))
            self._schema_references += schema_reference_rows(version)

    def write(self, db: Database, target_tables: ReadModelTables) -> None:
        """Writes all changes."""
        if self._updated and len(self._inserted) < MIN_COPY_ROWS:
            self._updated, self._inserted = [*self._updated, *self._inserted], []
        for write, table, rows in (
            (db.insert, target_tables.history, self._history),
            (db.delete, target_tables.entity, self._deleted),
            (db.insert, target_tables.entity, self._inserted),
            (db.upsert, target_tables.entity, self._updated),
            (db.upsert, target_tables.published, self._publications),
            (db.upsert, target_tables.schema_version, self._schema_versions),
            (db.upsert, target_tables.schema_reference, self._schema_references),
            (db.upsert, target_tables.reference, self._references),
        ):
            if rows:
                write(table, rows)


def _is_deletion_only(events: PositionedEvents, previous: EntityRow | None) -> bool:
    """Whether a live entity without values of the legacy APIs is deleted for good. previous: its row."""
    (_, event), *later = events
    is_deletion = isinstance(event, EntityDeleted) and event.reason == "deleted" and not later
    return is_deletion and previous is not None and f'"{FACADE}"' not in previous.private


def _has_facts(row: EntityRow | None) -> bool:
    """Whether an entity has facts of Confluent's API."""
    return row is not None and f'"{CONFLUENT}"' in row.private


def _by_stream(positioned_events: PositionedEvents) -> dict[str, list[tuple[int, EntityEvent]]]:
    streams: dict[str, list[tuple[int, EntityEvent]]] = {}
    for position, event in positioned_events:
        streams.setdefault(xids.tree_key(event.xid), []).append((position, event))
    return streams

"""The topic of entities: the changes of the read model's rows, as Debezium publishes those of a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper
from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.projections.entities.rows import EntityRow, entity_row
from annals.projections.kafka.debezium import DELETE, TABLE, DebeziumEncoder, RowChange
from annals.projections.kafka.records import Headers, RecordContent, WindowPart
from annals.projections.log.reader import Log

ENTITIES: Final = TABLE
_HEADERS: Final = (("content-type", b"application/json"),)
_MAPPER: Final = EventMapper()


class EntityTopic:
    """Each change of an entity. A deletion is followed by a tombstone, so the topic can be compacted."""

    name: Final = ENTITIES

    def __init__(self, prefix: str, *, schemas: bool = True) -> None:
        """prefix: of the topics' names. schemas: whether keys and values contain their schemas."""
        self.key_format: Final = "xid with schema" if schemas else "xid without schema"
        self._encoder = DebeziumEncoder(prefix, schemas=schemas)

    def records(self, parts: Sequence[WindowPart], log: Log) -> Iterator[RecordContent]:
        """See TopicContent. Raises: UnreadableEvent, UnknownTopic."""
        for change in _row_changes(parts, log):
            key, headers = self._encoder.key(change), [*_HEADERS]
            yield RecordContent(change.interaction, change.position, key, self._encoder.value(change), headers)
            if change.operation == DELETE:
                tombstone_headers: Headers = []
                yield RecordContent(change.interaction, change.position, key, None, tombstone_headers)


def _row_changes(parts: Sequence[WindowPart], log: Log) -> Iterator[RowChange]:
    """The changes of rows by some events; none for a deletion of what was deleted before (LEG-707)."""
    tree_rows = [row for part in parts for row in part.rows if not xids.is_outside_tree(row.stream)]
    previous_rows = {row.stream: _entity_row(row) for row in log.predecessors(_first_of_each_stream(tree_rows))}
    for interaction, rows in parts:
        for row in rows:
            if xids.is_outside_tree(row.stream):
                continue
            before, after = previous_rows.get(row.stream), _entity_row(row)
            previous_rows[row.stream] = after
            if before is not None or after is not None:
                yield RowChange(interaction, row.position, before, after)


def _first_of_each_stream(rows: Sequence[LogRow]) -> list[LogRow]:
    return list({row.stream: row for row in reversed(rows)}.values())


def _entity_row(row: LogRow) -> EntityRow | None:
    """The row of the read model after an event; None after a deletion."""
    event = _MAPPER.event_of_row(row)
    return None if isinstance(event, EntityDeleted) else entity_row(event, row.position)

"""The records of both topics: each is a function of the log, so a republished record is the same.

The records of a topic are numbered 1, 2, 3 without gaps, in the order of the log. A reader of several partitions
restores that order from the numbers alone: the next record has the next number, and while it is missing, an earlier
record is still to arrive.
Spec: CloudEvents Kafka protocol binding 1.0; EV-77, EV-78, EV-79.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import orjson

from annals.commands.store.hashes import Interaction, LogRow
from annals.domain.values import xid as xids
from annals.projections.events.xregistry_events import ChangeEvent, XRegistryEvents
from annals.projections.log.documents import referenced_document
from annals.projections.log.table_rows import SCHEMA_VERSION, LogTableRow, table_rows
from annals.projections.subscriptions.sinks.kafka import records

#: The topics, by the part of their names after the prefix.
LOG: Final = "log"
EVENTS: Final = "events"
TOPICS: Final = (LOG, EVENTS)

#: Headers of every record: the number in its topic, the position of the stored event in the log, the positions of its
#: interaction's first and last event, its correlation id.
NUMBER: Final = "annals_number"
POSITION: Final = "annals_position"
FIRST: Final = "annals_first"
LAST: Final = "annals_last"
INTERACTION: Final = "annals_interaction"
#: Header of the log's records: the version of their columns.
SCHEMA: Final = "annals_schema"
#: Header of the log's records if documents are published: the bytes of the document that a Version refers to. A
#: Resource refers to the document of a Version, which has its own event.
DOCUMENT: Final = "annals_document"
_VERSION_SEGMENTS: Final = 6

Headers = list[tuple[str, bytes]]
#: Returns the bytes of a document by its hash, None if it is lost.
FindDocument = Callable[[str], bytes | None]


class PublishedCounts(NamedTuple):
    """How much is published: the records of the log, which is a position, and the records of events."""

    log: int = 0
    events: int = 0


class PublishedRecord(NamedTuple):
    """A record to publish. topic: `LOG` or `EVENTS`. key: folded xid of the Group, or `/`."""

    topic: str
    position: int
    key: bytes
    value: bytes
    headers: Headers

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return len(self.key) + len(self.value) + sum(len(name) + len(value) for name, value in self.headers)


class RecordBuilder:
    """Builds the records of interactions. contentmode: of events, `structured` or `binary`."""

    def __init__(self, events: XRegistryEvents, contentmode: str = "structured") -> None:
        self._events = events
        self._contentmode = contentmode

    def build(
        self,
        interaction: Interaction,
        rows: Iterable[LogRow],
        counts: PublishedCounts,
        find_document: FindDocument | None = None,
    ) -> tuple[list[PublishedRecord], PublishedCounts]:
        """The records of an interaction, or of its next part, and the counts after them.

        find_document: loads the documents to publish in the log; None for no documents.
        """
        log_rows = list(rows)
        log_records = [_log_record(row) for row in table_rows(interaction, log_rows)]
        if find_document is not None:
            log_records = [
                _with_document(record, row, find_document) for record, row in zip(log_records, log_rows, strict=True)
            ]
        messages = self._events.messages(interaction, log_rows)
        event_records = [
            self._event_record(interaction, message, number)
            for number, message in enumerate(messages, counts.events + 1)
        ]
        return [*log_records, *event_records], PublishedCounts(
            counts.log + len(log_records), counts.events + len(event_records)
        )

    def _event_record(self, interaction: Interaction, message: ChangeEvent, number: int) -> PublishedRecord:
        kafka_record = records.encode_record(message.cloudevent(), self._contentmode, records.KEYLESS)
        position_headers = _position_headers(
            number, message.position, interaction.first, interaction.last, message.xregcorrelationid
        )
        key = partition_key(xids.stream(message.subject))
        return PublishedRecord(
            EVENTS, message.position, key, kafka_record.value, [*kafka_record.headers, *position_headers]
        )


def partition_key(stream: str) -> bytes:
    """The key of a stream: the folded xid of its Group, or `/` outside any Group (EV-78).

    Folded, because a Group that is deleted and re-created in another case continues its old streams.
    """
    parts = xids.segments(stream)
    is_in_group = len(parts) > 1 and not xids.is_outside_tree(stream)
    return (xids.join(*parts[:2]) if is_in_group else xids.REGISTRY).encode()


def _log_record(row: LogTableRow) -> PublishedRecord:
    position_headers = _position_headers(row.position, row.position, row.first, row.last, row.xregcorrelationid)
    headers = [("content-type", b"application/json"), (SCHEMA, _encode_number(SCHEMA_VERSION)), *position_headers]
    return PublishedRecord(
        LOG, row.position, partition_key(row.stream), orjson.dumps(row._asdict(), default=_base64), headers
    )


def _with_document(record: PublishedRecord, row: LogRow, find_document: FindDocument) -> PublishedRecord:
    sha256 = referenced_document(row) if len(xids.segments(row.stream)) == _VERSION_SEGMENTS else None
    content = find_document(sha256) if sha256 is not None else None
    return record if content is None else record._replace(headers=[*record.headers, (DOCUMENT, content)])


def _position_headers(number: int, position: int, first: int, last: int, interaction: str) -> Headers:
    numbers = {NUMBER: number, POSITION: position, FIRST: first, LAST: last}
    return [*((name, _encode_number(value)) for name, value in numbers.items()), (INTERACTION, interaction.encode())]


def _encode_number(number: int) -> bytes:
    return str(number).encode()


def _base64(value: Any) -> str:
    return b64encode(value).decode()


class RecordPosition(NamedTuple):
    """A record's number in its topic, its position in the log, and the id of its interaction, from its headers."""

    number: int
    position: int
    interaction: str


def record_position(headers: Iterable[tuple[str, bytes]]) -> RecordPosition | None:
    """The position of a record; None if it is not of a registry."""
    values_by_name = dict(headers)
    try:
        return RecordPosition(
            int(values_by_name[NUMBER]), int(values_by_name[POSITION]), values_by_name[INTERACTION].decode()
        )
    except (KeyError, ValueError):
        return None

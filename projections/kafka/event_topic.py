"""Topics of change events: one for each event family, with the CloudEvents that the feed `/-/events` has.

Spec: CloudEvents Kafka protocol binding 1.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from annals.domain.subscriptions.event_families import FAMILIES, XREGISTRY
from annals.domain.values import xid as xids
from annals.projections.events.event_families import EventFamily
from annals.projections.events.xregistry_events import ChangeEvent
from annals.projections.kafka.records import GROUP_KEYS, Headers, RecordContent, WindowPart, partition_key
from annals.projections.log.reader import Log
from annals.projections.subscriptions.sinks.kafka import records

EVENTS: Final = "events"
#: The topics of events by the names of their families.
EVENT_TOPICS: Final = {family: EVENTS if family == XREGISTRY else f"{EVENTS}.{family}" for family in FAMILIES}


class EventTopic:
    """The change events of one family."""

    key_format: Final = GROUP_KEYS

    def __init__(self, family: EventFamily, contentmode: str = "structured") -> None:
        """contentmode: `structured` or `binary`."""
        self.name: Final = EVENT_TOPICS[family.name]
        self._family = family
        self._contentmode = contentmode

    def records(self, parts: Sequence[WindowPart], log: Log) -> Iterator[RecordContent]:
        """See TopicContent. Raises: UnknownTopic for an event that a newer program wrote."""
        for interaction, rows in parts:
            for message in self._family.messages(interaction, rows):
                value, headers = self._encode(message)
                key = partition_key(xids.stream(message.xid))
                yield RecordContent(interaction, message.position, key, value, headers)

    def _encode(self, message: ChangeEvent) -> tuple[bytes, Headers]:
        if self._contentmode == "structured":  # without the library's event, which takes three times as long
            return message.json(), [(records.CONTENT_TYPE, records.STRUCTURED)]
        record = records.encode_record(message.cloudevent(), self._contentmode, records.KEYLESS)
        return record.value, record.headers

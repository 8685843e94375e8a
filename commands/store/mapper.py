"""Maps events to stored bytes and back.

The state of a stored event is one JSON object: first the entity's image (`xid`, `type`, `epoch`, `attributes`,
`private`), then what the interaction adds. The image is a prefix of the object, so it is encoded once and hashed in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from eventsourcing.persistence import JSONTranscoder, Mapper, StoredEvent

from annals.commands.store.clock import format_time, parse_time
from annals.commands.store.hashes import LogRow
from annals.domain.registry.events import TOPICS, EntityDeleted, EntityEvent
from annals.domain.values.json_text import dumps, loads_trusted

State = dict[str, Any]
#: A newer topic, and the function that converts a state of the older one.
Upcast = tuple[str, Callable[[State], State]]

#: Topics that are no longer written. Stored bytes never change; readers convert them.
UPCASTS: Final[Mapping[str, Upcast]] = {}


class UnreadableEvent(ValueError):
    """A stored event that is damaged."""


class UnknownTopic(UnreadableEvent):
    """An event of a kind that this program does not know: a newer program wrote it."""


def require_bytes(value: Any) -> bytes:
    """A value of a bytes column.

    Raises: UnreadableEvent for a value of another type. SQLite stores any type in any column, and `bytes` of a number
    would be as many zeros.
    """
    if type(value) is bytes:  # nearly always, and for each row that is read
        return value
    if isinstance(value, bytes | memoryview):
        return bytes(value)
    raise UnreadableEvent(f"bytes are needed where {type(value).__name__} is stored")


class EventMapper(Mapper[str]):
    """The library's mapper, for events that carry their own topic, stream and revision."""

    def __init__(self, upcasts: Mapping[str, Upcast] = UPCASTS) -> None:
        super().__init__(JSONTranscoder())
        self._upcasts = upcasts

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        event: EntityEvent = domain_event
        return StoredEvent(event.stream, event.revision, event.TOPIC, stored_state(event, after_image(event)))

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        return self.event(stored_event.topic, stored_event.originator_version, stored_event.state)

    def event(self, topic: str, revision: int, state: bytes) -> EntityEvent:
        """The event of a stored row.

        Raises: UnreadableEvent, UnknownTopic.
        """
        try:
            content = loads_trusted(state)
        except ValueError as error:
            raise _unreadable_event(topic, revision, error) from error
        return self.event_of_content(topic, revision, content)

    def event_of_content(self, topic: str, revision: int, content: State) -> EntityEvent:
        """The event of a parsed state; the mapper may modify `content`. Raises: as `event`."""
        try:
            while topic in self._upcasts:
                topic, upcast = self._upcasts[topic]
                content = upcast(content)
            if topic not in TOPICS:
                raise UnknownTopic(f"an event of the kind {topic} is unknown to this program")
            content["time"] = parse_time(content["time"])
            return TOPICS[topic](revision=revision, **content)
        except UnknownTopic:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise _unreadable_event(topic, revision, error) from error

    def event_of_row(self, row: LogRow) -> EntityEvent:
        """The event of a row of the log."""
        return self.event(row.topic, row.revision, row.state)


def _unreadable_event(topic: str, revision: int, error: Exception) -> UnreadableEvent:
    message = " ".join(str(error).split())
    return UnreadableEvent(f"an event cannot be read ({topic}, revision {revision}): {message}")


def after_image(event: EntityEvent) -> bytes:
    """The entity after the event, as the bytes that its hash covers; a read-model row yields the same bytes."""
    image = {"xid": event.xid, "type": event.type, "epoch": event.epoch}
    return dumps(image | {"attributes": event.attributes, "private": event.private})


def assemble_after_image(xid: str, type: str, epoch: int, attributes: bytes, private: bytes) -> bytes:
    """The image of an entity whose attributes and private members are already JSON text."""
    return b'{"xid":%b,"type":%b,"epoch":%d,"attributes":%b,"private":%b}' % (
        dumps(xid),
        dumps(type),
        epoch,
        attributes,
        private,
    )


def stored_state(event: EntityEvent, image: bytes) -> bytes:
    """The bytes that the log stores for an event, given its image."""
    members: State = {"changed": event.changed}
    if event.deprecated_changed is not None:
        members["deprecated_changed"] = event.deprecated_changed
    if isinstance(event, EntityDeleted):
        members["reason"] = event.reason
    if event.born is not None:
        members["born"] = event.born
    members |= {"xregcorrelationid": event.xregcorrelationid, "time": format_time(event.time)}
    return image[:-1] + b"," + dumps(members)[1:]

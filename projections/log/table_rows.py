"""The log as a table: the columns and types of every source of it for Spark and for bulk readers.

One row for each event, with the columns of its interaction. Rows are in the order of their positions. The last row of
an interaction has `position = last`, the first one `first = position`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from annals.commands.store.archive.state_reader import ARCHIVED
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.hashes import Interaction, LogRow, entity_hash
from annals.commands.store.mapper import (
    UPCASTS,
    EventMapper,
    UnreadableEvent,
    Upcast,
    after_image,
    assemble_after_image,
    stored_state,
)
from annals.domain.registry.events import EntityEvent

#: The version of this table. It changes with the columns, and readers refuse a version that they do not know.
SCHEMA_VERSION: Final = 3
#: The readable versions: rows of version 2 lack `authenticator` and `keyid`, those of version 1 also `salt`. What is
#: missing is empty.
KNOWN_VERSIONS: Final = (1, 2, SCHEMA_VERSION)

_MAPPER: Final = EventMapper()


class LogTableRow(NamedTuple):
    """One event as columns.

    position: of the event. stream: of its entity, the folded xid. revision: 1 for the first event of the stream.
    topic: kind and version of the event, such as `EntityCreated:1`. state: the stored JSON text, which holds the entity
    after the event. first, last: positions of the interaction's events. time: RFC 3339 in UTC with microseconds.
    caller, command, registry_url: who sent which command to which registry. chain, statehash: SHA-256 of the
    interaction.
    salt: hides the caller in the chain hash; empty if that is of version 1. authenticator, keyid: what proved who the
    caller is, and the id of the API key if it was one; each may be empty.
    """

    position: int
    stream: str
    revision: int
    topic: str
    state: str
    first: int
    last: int
    xregcorrelationid: str
    time: str
    caller: str
    command: str
    registry_url: str
    chain: bytes
    statehash: bytes
    salt: str = ""
    authenticator: str = ""
    keyid: str = ""


def table_rows(interaction: Interaction, events: Iterable[LogRow]) -> Iterator[LogTableRow]:
    """The rows of an interaction, or of a part of it."""
    for event in events:
        yield LogTableRow(
            position=event.position,
            stream=event.stream,
            revision=event.revision,
            topic=event.topic,
            state=event.state.decode(),
            first=interaction.first,
            last=interaction.last,
            xregcorrelationid=interaction.xregcorrelationid,
            time=interaction.time,
            caller=interaction.caller,
            command=interaction.command,
            registry_url=interaction.registry_url,
            chain=interaction.chain,
            statehash=interaction.state,
            salt=interaction.salt,
            authenticator=interaction.authenticator,
            keyid=interaction.keyid,
        )


def state_text(stored: bytes) -> str:
    """The stored JSON text of an event, from the bytes of the database's column. Raises: UnreadableEvent."""
    if stored == ARCHIVED:
        raise UnreadableEvent("the state of an event is in the archive now, which is not read here")
    return decompress_state(stored).decode()


def event_of(topic: str, revision: int, state: str) -> EntityEvent:
    """The event of a row. Raises: UnreadableEvent, UnknownTopic."""
    return _MAPPER.event(topic, revision, state.encode())


def upcasts() -> dict[str, Upcast]:
    """The converters from topics that are no longer written to the current ones, by topic."""
    return dict(UPCASTS)


def upcast(topic: str, revision: int, state: str, upcasts_by_topic: Mapping[str, Upcast]) -> tuple[str, str]:
    """Topic and state with which an event would be stored today. Raises: UnreadableEvent, UnknownTopic."""
    event = EventMapper(upcasts_by_topic).event(topic, revision, state.encode())
    return event.TOPIC, stored_state(event, after_image(event)).decode()


def log_row(row: LogTableRow) -> LogRow:
    """The event of a row, as the log stores it."""
    return LogRow(row.position, row.stream, row.revision, row.topic, row.state.encode())


def interaction_of(row: LogTableRow) -> Interaction:
    """The interaction of a row, as the log stores it."""
    return Interaction(
        last=row.last,
        first=row.first,
        xregcorrelationid=row.xregcorrelationid,
        folded=row.xregcorrelationid.casefold(),
        time=row.time,
        caller=row.caller,
        command=row.command,
        registry_url=row.registry_url,
        chain=row.chain,
        state=row.statehash,
        salt=row.salt,
        authenticator=row.authenticator,
        keyid=row.keyid,
    )


def image_hash(xid: str, type: str, epoch: int, attributes: str, private: str) -> bytes:
    """The hash of an entity, which the state hash of its log sums. attributes, private: JSON texts as stored."""
    return entity_hash(assemble_after_image(xid, type, epoch, attributes.encode(), private.encode()))

"""Prepares events for the log: their stored bytes, their hashes, and the new heads of their streams."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from eventsourcing.persistence import IntegrityError, StoredEvent
from sqlalchemy import Connection

from annals.commands.store import hashes
from annals.commands.store.compression.document_compression import compress_document
from annals.commands.store.database import sql, tables
from annals.commands.store.hashes import Interaction, LogRow
from annals.commands.store.mapper import after_image, stored_state
from annals.commands.store.random_blocks import RandomBlocks
from annals.commands.store.recorder import LogRecorder
from annals.commands.store.stream_head import StreamHead
from annals.domain.registry.entities import xref_target
from annals.domain.registry.events import SALT, EntityDeleted, EntityEvent
from annals.domain.values import xid as xids

#: Returns random text that cannot be guessed.
NewSalt = Callable[[], str]


class SaltGenerator:
    """Salts of 128 random bits, for one thread at a time."""

    _SIZE: Final = 16

    def __init__(self) -> None:
        self._random = RandomBlocks()

    def __call__(self) -> str:
        return urlsafe_b64encode(self._random.take(self._SIZE)).rstrip(b"=").decode()


MOVE_HEAD: Final = (
    "ON CONFLICT (tree_key) DO UPDATE SET position = excluded.position, revision = excluded.revision,"
    " xid = excluded.xid, live = excluded.live, hash = excluded.hash, xref = excluded.xref"
)


class EncodedEvent(NamedTuple):
    """An event, its stored form, and the hash of its entity after it; the hash is empty after a deletion."""

    event: EntityEvent
    stored: StoredEvent
    hash: bytes

    @property
    def counted_hash(self) -> bytes:
        """The hash that the event adds to the state hash."""
        return b"" if xids.is_outside_tree(self.event.stream) else self.hash

    def row(self, position: int) -> LogRow:
        """The event's row in the log."""
        return LogRow(position, self.event.stream, self.event.revision, self.event.TOPIC, self.stored.state)

    def head(self, position: int) -> tuple[Any, ...]:
        """The row of its stream in `head`."""
        event = self.event
        return (
            xids.tree_key(event.xid),
            position,
            event.revision,
            event.xid,
            event.type,
            bool(self.hash),
            self.hash,
            xref_target(event),
        )


def add_salts(events: Sequence[EntityEvent], new_salt: NewSalt) -> list[EntityEvent]:
    """The events with salts in their images; an event of another registry keeps its own salt."""
    return [
        event
        if SALT in event.private or isinstance(event, EntityDeleted)
        else event.with_members(private=event.private | {SALT: new_salt()})
        for event in events
    ]


def encode_event(event: EntityEvent) -> EncodedEvent:
    """An event with its stored form and its hash."""
    image = after_image(event)
    stored = StoredEvent(event.stream, event.revision, event.TOPIC, stored_state(event, image))
    return EncodedEvent(event, stored, b"" if isinstance(event, EntityDeleted) else hashes.entity_hash(image))


def replaced_hash(event: EntityEvent, head: StreamHead) -> bytes:
    """The hash of the entity that an event replaces; empty for entities outside the state hash.

    head: of its stream. Raises: IntegrityError when the event does not follow the last event of its stream.
    """
    if event.revision != head.revision + 1:
        raise IntegrityError(f"{event.stream} is at revision {head.revision}, but its next event has {event.revision}")
    return b"" if xids.is_outside_tree(event.stream) else head.hash


class UnwrittenEvents:
    """What a transaction has appended and not written yet: all of it costs one statement for each table.

    recorded: the events with their positions. replaced: the ends of their streams before them, by tree key. size: bytes
    of states and documents.
    """

    def __init__(self) -> None:
        self.recorded: list[tuple[int, EntityEvent]] = []
        self.replaced: dict[str, StreamHead] = {}
        self.size = 0
        self._first_position = 0
        self._stored: list[StoredEvent] = []
        self._heads: dict[str, tuple[Any, ...]] = {}
        self._interactions: list[Interaction] = []
        self._documents: dict[str, bytes] = {}

    @property
    def count(self) -> int:
        """The number of events that the log does not have yet."""
        return len(self._stored)

    def document(self, sha256: str) -> bytes | None:
        """The bytes of a document, if it is among the unwritten ones."""
        return self._documents.get(sha256)

    def add_documents(self, documents: Mapping[str, bytes]) -> None:
        """Adds documents that events refer to."""
        self._documents |= documents
        self.size += sum(map(len, documents.values()))

    def add_event(self, encoded: EncodedEvent, position: int, replaced: StreamHead) -> None:
        """Adds the event that follows the last one. replaced: the end of its stream before it."""
        if not self._stored:
            self._first_position = position
        self._stored.append(encoded.stored)
        head = encoded.head(position)
        self._heads[head[0]] = head
        self.replaced.setdefault(head[0], replaced)
        self.recorded.append((position, encoded.event))
        self.size += len(encoded.stored.state)

    def add_interaction(self, interaction: Interaction) -> None:
        """Adds the interaction of the last events."""
        self._interactions.append(interaction)

    def extend(self, later: UnwrittenEvents) -> None:
        """Adds what was appended afterwards."""
        if not self._stored:
            self._first_position = later._first_position
        self._stored += later._stored
        self._heads |= later._heads
        self._interactions += later._interactions
        self._documents |= later._documents
        self.recorded += later.recorded
        self.replaced = later.replaced | self.replaced
        self.size += later.size

    def write_log(self, connection: Connection, recorder: LogRecorder) -> None:
        """Writes the log's tables; what projections need stays. Raises: IntegrityError."""
        if self._documents:
            rows = [(sha256, compress_document(content)) for sha256, content in self._documents.items()]
            sql.insert(connection, tables.document, rows, "ON CONFLICT DO NOTHING")
        if self._stored:
            recorder.insert_events(self._stored, connection=connection, after=self._first_position - 1)
            sql.insert(connection, tables.head, list(self._heads.values()), MOVE_HEAD)
        if self._interactions:
            sql.insert(connection, tables.interaction, self._interactions)
        for written in (self._documents, self._stored, self._heads, self._interactions):
            written.clear()
        self.size = 0

    def clear_recorded(self) -> None:
        """Removes what projections have applied."""
        self.recorded.clear()
        self.replaced.clear()

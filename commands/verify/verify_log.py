"""Verifies that a log is unchanged: counts, chains and sums it again from its first event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import starmap
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from annals.commands.store import hashes as proof
from annals.commands.store.archive.state_reader import ARCHIVED
from annals.commands.store.compression.document_compression import decompress_document
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.database import sql
from annals.commands.store.hashes import Interaction, LogRow, extract_image
from annals.commands.store.log import Store
from annals.commands.store.mapper import EventMapper, UnreadableEvent, assemble_after_image
from annals.commands.verify.archived_states import ArchivedStates, unchecked_event
from annals.commands.verify.unchecked_rows import (
    catch_unreadable,
    open_snapshot,
    storage_faults,
    unchecked_row,
)
from annals.domain.compat.legacy_apis import document_hash
from annals.domain.registry.entities import xref_target
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.replication.link import COLLECTION
from annals.domain.values import xid as xids

#: Called with the position reached and the last position.
ProgressCallback = Callable[[int, int], None]

_SELECT_INTERACTION: Final = "SELECT * FROM interaction"  # an older store lacks the last columns
_INTERACTIONS: Final = f"{_SELECT_INTERACTION} WHERE last > ? ORDER BY last LIMIT ?"
_LAST_INTERACTION: Final = f"{_SELECT_INTERACTION} ORDER BY last DESC LIMIT 1"
_EVENTS: Final = (
    "SELECT l.position, l.stream, l.revision, l.topic, l.state, p.position, p.stream, p.revision, p.topic, p.state,"
    " h.revision, h.xid, h.type, h.live, h.hash, h.xref"
    " FROM log l LEFT JOIN log p ON p.stream = l.stream AND p.revision = l.revision - 1"
    " LEFT JOIN head h ON h.tree_key = replace(l.stream, '/', '!') AND h.position = l.position"
    " WHERE l.position > ? AND l.position <= ? ORDER BY l.position LIMIT ?"
)
_EVENTS_WITHOUT_HEAD: Final = (
    "SELECT l.position, l.stream FROM log l"
    " WHERE NOT EXISTS (SELECT 1 FROM log n WHERE n.stream = l.stream AND n.revision > l.revision)"
    " AND NOT EXISTS (SELECT 1 FROM head h WHERE h.tree_key = replace(l.stream, '/', '!')"
    " AND h.position = l.position AND h.revision = l.revision) ORDER BY l.position"
)
_HEADS_WITHOUT_EVENT: Final = (
    "SELECT tree_key FROM head h WHERE NOT EXISTS"
    " (SELECT 1 FROM log l WHERE l.position = h.position AND replace(l.stream, '/', '!') = h.tree_key)"
)
#: Streams whose last event is only in the archive, where current states must not be.
_ARCHIVED_HEADS: Final = (
    "SELECT l.position, l.stream FROM head h JOIN log l ON l.position = h.position WHERE l.state = ?"
)
_DOCUMENTS: Final = "SELECT sha256, bytes FROM document WHERE sha256 > ? ORDER BY sha256 LIMIT ?"
_LINK_PREFIX: Final = f"{COLLECTION}/"
_ROWS: Final = (
    "SELECT tree_key, xid, type, epoch, compressed_attributes, private FROM entity WHERE tree_key > ?"
    " ORDER BY tree_key LIMIT ?"
)


class VerificationFinding(NamedTuple):
    """A difference from what was written, and the position of the event that shows it."""

    position: int
    text: str


def verify_log(
    store: Store,
    progress: ProgressCallback = lambda reached, last: None,
    archived: ArchivedStates | None = None,
) -> Iterator[VerificationFinding]:
    """Everything that is wrong with a log, in order; nothing when it is intact.

    A damaged interaction is reported once: the next one is compared with the stored values of the damaged one. Reads
    each event twice, in pages, from one snapshot; memory does not grow with the log.
    archived: the states of the archive, if they were read already. What cannot be read is reported for each of its
    segments, and its interactions are taken as they are stored.
    """
    if archived is None:
        with ArchivedStates(store) as archived:
            yield from verify_log(store, progress, archived)
            return
    if archived.damage:
        yield VerificationFinding(1, f"the record of the archive cannot be read: {archived.damage}")
    for segment, error in archived.failures:
        text = f"the events up to position {segment.last} are in the archive {segment.place}, which cannot be read: "
        yield VerificationFinding(segment.first, text + error.arguments["error_detail"])
    with open_snapshot(store) as connection:
        verification, unreadable = _LogVerification(connection, store.mapper, archived), list[str]()
        with catch_unreadable(unreadable.append):
            yield from _verify_snapshot(connection, verification, progress)
        for message in unreadable:
            yield VerificationFinding(verification.previous.last + 1, f"the database cannot read further: {message}")


def _verify_snapshot(
    connection: Connection, verification: _LogVerification, progress: ProgressCallback
) -> Iterator[VerificationFinding]:
    log_end = sql.scalar(connection, "SELECT coalesce(max(position), 0) FROM log")
    verification.damaged_documents.update(_damaged_documents(connection))
    for interaction in _interactions(connection):
        yield from verification.verify_interaction(interaction, lambda position: progress(position, log_end))
    if verification.previous.last != log_end:
        yield VerificationFinding(verification.previous.last + 1, "the log goes on after its last interaction")
    yield from _check_heads(connection, log_end)
    if verification.archived.segments:
        for position, stream in sql.run(connection, _ARCHIVED_HEADS, (ARCHIVED,)):
            yield VerificationFinding(position, f"the archive has the last event of {stream}, which belongs here")
    yield from starmap(VerificationFinding, storage_faults(connection, log_end))


def verify_row_hashes(store: Store) -> Iterator[VerificationFinding]:
    """A finding unless the hashes of the read model's rows sum to the state hash at the log's end."""
    with open_snapshot(store) as connection:
        unreadable, last_interaction = list[str](), proof.NO_INTERACTION
        with catch_unreadable(unreadable.append):
            last_interaction = _last_interaction(connection)
            hashes = (
                proof.entity_hash(_after_image(unchecked_row(_HashedRow, row)))
                for row in _rows_by_key(connection, _ROWS)
            )
            if proof.update_state_hash(proof.EMPTY_HASH, (), hashes) != last_interaction.state:
                yield VerificationFinding(
                    last_interaction.last, "the read model's rows do not add up to the state hash"
                )
        for message in unreadable:
            yield VerificationFinding(
                last_interaction.last, f"the database cannot read the read model's rows: {message}"
            )


class _LogVerification:
    """Verifies one interaction after another; `previous` is the previous one."""

    def __init__(self, connection: Connection, mapper: EventMapper, archived: ArchivedStates) -> None:
        """Starts before the first interaction."""
        # Links record interactions of other registries, whose times can be earlier than the end of this log.
        self._has_links = False
        self.previous = proof.NO_INTERACTION
        #: The SHA-256 of documents whose bytes do not match it.
        self.damaged_documents = set[str]()
        self.archived = archived
        self._connection = connection
        self._mapper = mapper

    def verify_interaction(
        self, interaction: Interaction, report_position: Callable[[int], None]
    ) -> Iterator[VerificationFinding]:
        """What is wrong with the next interaction. report_position: receives the end of each page of events."""
        yield from self._check_interaction(interaction)
        chain_hasher, state_hash, position = (
            proof.ChainHasher(self.previous.chain, interaction),
            self.previous.state,
            self.previous.last,
        )
        is_lost = is_previous_lost = False  # in the part of the archive that cannot be read
        for page in self._event_pages(interaction):
            is_lost = is_lost or any(self._is_lost(row) for row, _, _ in page)
            is_previous_lost = is_previous_lost or any(self._is_lost(row) for _, row, _ in page if row)
            for row, previous, _ in page:
                self._has_links = self._has_links or row.stream.startswith(_LINK_PREFIX)
                chain_hasher.add(row)
                yield from _check_succession(position, row, previous)
                position = row.position
            state_hash = proof.update_state_hash(
                state_hash,
                (_entity_hash(previous_row) for _, previous_row, _ in page if previous_row),
                (_entity_hash(row) for row, _, _ in page),
            )
            yield from self._check_contents(interaction, page)
            report_position(position)
        if position != interaction.last:
            yield VerificationFinding(position + 1, "events are missing")
        first = min(max(interaction.first, self.previous.last + 1), interaction.last)
        if chain_hasher.digest(interaction.state) != interaction.chain and not is_lost:
            yield VerificationFinding(first, "the chain hash differs: the interaction or its events were changed")
        if state_hash != interaction.state and not (is_lost or is_previous_lost):
            yield VerificationFinding(first, "the state hash differs")
        self.previous = interaction

    def _is_lost(self, row: LogRow) -> bool:
        return self.archived.is_lost(row.position, row.state)

    def _check_interaction(self, interaction: Interaction) -> Iterator[VerificationFinding]:
        if interaction.first != self.previous.last + 1:
            yield VerificationFinding(self.previous.last + 1, "interactions leave a gap or overlap")
        if interaction.time < self.previous.time and not self._has_links:
            yield VerificationFinding(interaction.first, "time runs backwards")
        if interaction.folded != interaction.xregcorrelationid.casefold():
            yield VerificationFinding(interaction.first, "the folded correlation id is not that of the interaction")

    def _event_pages(self, interaction: Interaction) -> Iterator[list[_EventContext]]:
        """The events of an interaction, each with its predecessor and head."""
        position = self.previous.last
        while position < interaction.last:
            rows = sql.run(self._connection, _EVENTS, (position, interaction.last, sql.CHUNK)).fetchall()
            if not rows or rows[-1][0] <= position:  # a damaged file may return the same rows endlessly
                return
            yield [_event_context(row, self.archived) for row in rows]
            position = rows[-1][0]

    def _check_contents(self, interaction: Interaction, page: list[_EventContext]) -> Iterator[VerificationFinding]:
        events = {row.position: self._checked_content(row) for row, _, _ in page}
        intact_documents = self._stored_documents(
            {event.document for event in events.values() if event and event.document}
        )
        for row, _, head in page:
            event = events[row.position]
            if event is None and self._is_lost(row):
                continue
            if event is None:
                yield VerificationFinding(row.position, "the event cannot be read")
                continue
            if event.stream != row.stream or event.xregcorrelationid != interaction.xregcorrelationid:
                yield VerificationFinding(row.position, "the event belongs to another stream or interaction")
            elif event.document and event.document not in intact_documents:
                yield VerificationFinding(row.position, f"the document {event.document} is missing or changed")
            if head is not None and head != event.head:
                yield VerificationFinding(row.position, f"head does not match the last event of {row.stream}")

    def _checked_content(self, row: LogRow) -> _CheckedContent | None:
        try:
            return _CheckedContent.from_event(self._mapper.event_of_row(row), row)
        except (ValueError, KeyError, TypeError):
            return None

    def _stored_documents(self, documents: set[str]) -> set[str]:
        hash_list = sql.list_parameter(self._connection, documents)
        rows = sql.run(self._connection, "SELECT sha256 FROM document WHERE sha256 {among}", (hash_list,))
        return {digest for (digest,) in rows} - self.damaged_documents


class _EventContext(NamedTuple):
    """An event, the previous one of its stream, and the columns of the stream's head if it points at the event."""

    row: LogRow
    previous: LogRow | None
    head: tuple[Any, ...] | None


def _event_context(row: Sequence[Any], archived: ArchivedStates) -> _EventContext:
    previous, head = row[5:10], tuple(row[10:])
    return _EventContext(
        unchecked_event(row[:5], archived),
        unchecked_event(previous, archived) if previous[0] is not None else None,
        head if head[0] is not None else None,
    )


class _CheckedContent(NamedTuple):
    """The checked content of an event. head: the expected head of the stream if this is its last event."""

    stream: str
    xregcorrelationid: str
    document: str | None
    head: tuple[Any, ...]

    @classmethod
    def from_event(cls, event: EntityEvent, row: LogRow) -> _CheckedContent:
        hash = b"" if isinstance(event, EntityDeleted) else proof.entity_hash(extract_image(row.state))
        head = (event.revision, event.xid, event.type, bool(hash), hash, xref_target(event))
        return cls(event.stream, event.xregcorrelationid, document_hash(event.private), head)


class _HashedRow(NamedTuple):
    """The columns of the read model's table `entity` that its hash covers."""

    tree_key: str
    xid: str
    type: str
    epoch: int
    compressed_attributes: bytes
    private: str


def _after_image(row: _HashedRow) -> bytes:
    try:
        attributes = decompress_state(row.compressed_attributes)
    except UnreadableEvent:
        attributes = row.compressed_attributes  # an image of no entity, so that the sum differs
    return assemble_after_image(row.xid, row.type, row.epoch, attributes, row.private.encode())


def _check_succession(position: int, row: LogRow, previous: LogRow | None) -> Iterator[VerificationFinding]:
    if row.position != position + 1:
        yield VerificationFinding(position + 1, "events are missing")
    if (row.revision > 1) != (previous is not None) or (previous and previous.position >= row.position):
        yield VerificationFinding(row.position, f"revision {row.revision} does not follow in the stream {row.stream}")


def _entity_hash(row: LogRow) -> bytes:
    """What an event's entity adds to the state hash: nothing if it is outside the tree, deleted or unreadable."""
    if xids.is_outside_tree(row.stream) or row.topic.partition(":")[0] == EntityDeleted.TOPIC.partition(":")[0]:
        return b""
    try:
        return proof.entity_hash(extract_image(row.state))
    except ValueError:
        return b""


def _check_heads(connection: Connection, log_end: int) -> Iterator[VerificationFinding]:
    for position, stream in sql.run(connection, _EVENTS_WITHOUT_HEAD):
        yield VerificationFinding(position, f"head does not point at the last event of {stream}")
    for (key,) in sql.run(connection, _HEADS_WITHOUT_EVENT):
        yield VerificationFinding(log_end, f"head has {key!r}, for which there is no event")


class _Document(NamedTuple):
    sha256: str
    stored: bytes


def _is_document(key: str, stored: bytes) -> bool:
    try:
        return sha256(decompress_document(key, stored)).hexdigest() == key
    except UnreadableEvent:
        return False


def _damaged_documents(connection: Connection) -> list[str]:
    rows = _rows_by_key(connection, _DOCUMENTS, 50)
    documents = (unchecked_row(_Document, row) for row in rows)
    return [sha256 for sha256, stored in documents if not _is_document(sha256, stored)]


def _interactions(connection: Connection) -> Iterator[Interaction]:
    for row in _rows_by_key(connection, _INTERACTIONS, start=0):
        yield unchecked_row(Interaction, row)


def _last_interaction(connection: Connection) -> Interaction:
    row = sql.run(connection, _LAST_INTERACTION).fetchone()
    return unchecked_row(Interaction, row) if row else proof.NO_INTERACTION


def _is_beyond(key: Any, last_key: Any) -> bool:
    return isinstance(key, type(last_key)) and key > last_key


def _rows_by_key(connection: Connection, statement: str, size: int = sql.CHUNK, start: str | int = "") -> Iterator[Any]:
    """Rows in pages; each page starts after the first column of the last row."""
    last_key: Any = start
    while True:
        page = sql.run(connection, statement, (last_key, size)).fetchall()
        yield from page
        if len(page) < size or not _is_beyond(page[-1][0], last_key):  # a damaged key may repeat endlessly
            return
        last_key = page[-1][0]

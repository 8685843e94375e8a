"""Shows that a log is what was once written: counted, chained and summed anew from its first event."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import starmap
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from commands import proof, sql
from commands.damaged import faults, members, readable, snapshot
from commands.log import Store
from commands.mapper import EventMapper, image_of
from commands.proof import Interaction, LogRow, image_in
from commands.world import pointer
from domain import xid as xids
from domain.compat.family import document_of
from domain.events import EntityDeleted, EntityEvent
from domain.links.link import COLLECTION

#: Called with the position reached and the last one.
Progress = Callable[[int, int], None]

_FACTS: Final = f"SELECT {', '.join(Interaction._fields)} FROM interaction"
_INTERACTIONS: Final = f"{_FACTS} WHERE last > ? ORDER BY last LIMIT ?"
_LAST: Final = f"{_FACTS} ORDER BY last DESC LIMIT 1"
_EVENTS: Final = (
    "SELECT l.position, l.stream, l.revision, l.topic, l.state, p.position, p.stream, p.revision, p.topic, p.state,"
    " h.revision, h.xid, h.type, h.parent, h.live, h.hash, h.xref"
    " FROM log l LEFT JOIN log p ON p.stream = l.stream AND p.revision = l.revision - 1"
    " LEFT JOIN head h ON h.tree_key = replace(l.stream, '/', '!') AND h.position = l.position"
    " WHERE l.position > ? AND l.position <= ? ORDER BY l.position LIMIT ?"
)
_UNPOINTED: Final = (
    "SELECT l.position, l.stream FROM log l"
    " WHERE NOT EXISTS (SELECT 1 FROM log n WHERE n.stream = l.stream AND n.revision > l.revision)"
    " AND NOT EXISTS (SELECT 1 FROM head h WHERE h.tree_key = replace(l.stream, '/', '!')"
    " AND h.position = l.position AND h.revision = l.revision) ORDER BY l.position"
)
_STRAY: Final = (
    "SELECT tree_key FROM head h WHERE NOT EXISTS"
    " (SELECT 1 FROM log l WHERE l.position = h.position AND replace(l.stream, '/', '!') = h.tree_key)"
)
_DOCUMENTS: Final = "SELECT sha256, bytes FROM document WHERE sha256 > ? ORDER BY sha256 LIMIT ?"
_LINKS: Final = f"{COLLECTION}/"
_ROWS: Final = (
    "SELECT tree_key, xid, type, epoch, attributes, private FROM entity WHERE tree_key > ? ORDER BY tree_key LIMIT ?"
)


class Finding(NamedTuple):
    """Something that is not as it was written, and the position of the event at which it shows."""

    position: int
    what: str


def verify(store: Store, progress: Progress = lambda reached, last: None) -> Iterator[Finding]:
    """Everything that is wrong with a log, in order; nothing when it is whole.

    A damaged interaction is reported once: the next is measured against what is stored of it. Reads each event twice,
    in pages, from one snapshot; memory does not grow with the log.
    """
    with snapshot(store) as connection:
        walk, unreadable = _Walk(connection, store.mapper), list[str]()
        with readable(unreadable.append):
            yield from _walked(connection, walk, progress)
        for said in unreadable:
            yield Finding(walk.before.last + 1, f"the database cannot read on: {said}")


def _walked(connection: Connection, walk: _Walk, progress: Progress) -> Iterator[Finding]:
    last = sql.value(connection, "SELECT coalesce(max(position), 0) FROM log")
    walk.damaged.update(_damaged_documents(connection))
    for interaction in _interactions(connection):
        yield from walk.interaction(interaction)
        progress(interaction.last, last)
    if walk.before.last != last:
        yield Finding(walk.before.last + 1, "the log goes on after its last interaction")
    yield from _heads(connection, last)
    yield from starmap(Finding, faults(connection, last))


def verify_rows(store: Store) -> Iterator[Finding]:
    """Whether the rows of the read model are the entities that live at the log's end: their hashes add up to its."""
    with snapshot(store) as connection:
        unreadable, end = list[str](), proof.START
        with readable(unreadable.append):
            end = _last_interaction(connection)
            hashes = (proof.entity_hash(_image(members(_Row, row))) for row in _by_key(connection, _ROWS))
            if proof.moved(proof.NOTHING, (), hashes) != end.state:
                yield Finding(end.last, "the read model's rows do not add up to the state hash")
        for said in unreadable:
            yield Finding(end.last, f"the database cannot read the read model's rows: {said}")


class _Walk:
    """From interaction to interaction; `before` is the one passed last."""

    def __init__(self, connection: Connection, mapper: EventMapper) -> None:
        """damaged: hashes of documents that are others than they say."""
        # Links take in what happened elsewhere, and earlier than what the log ends with.
        self._linked = False
        self.before = proof.START
        self.damaged = set[str]()
        self._connection = connection
        self._mapper = mapper

    def interaction(self, stored: Interaction) -> Iterator[Finding]:
        """What is wrong with the next interaction."""
        yield from self._facts(stored)
        chain, state, position = proof.Chain(self.before.chain, stored), self.before.state, self.before.last
        for page in self._pages(stored):
            for row, previous, _ in page:
                self._linked = self._linked or row.stream.startswith(_LINKS)
                chain.add(row)
                yield from _succession(position, row, previous)
                position = row.position
            state = proof.moved(state, (_hash(old) for _, old, _ in page if old), (_hash(row) for row, _, _ in page))
            yield from self._contents(stored, page)
        if position != stored.last:
            yield Finding(position + 1, "events are missing")
        first = min(max(stored.first, self.before.last + 1), stored.last)
        if chain.digest(stored.state) != stored.chain:
            yield Finding(first, "the chain hash differs: the interaction or its events were changed")
        if state != stored.state:
            yield Finding(first, "the state hash differs")
        self.before = stored

    def _facts(self, stored: Interaction) -> Iterator[Finding]:
        if stored.first != self.before.last + 1:
            yield Finding(self.before.last + 1, "interactions leave a gap or overlap")
        if stored.time < self.before.time and not self._linked:
            yield Finding(stored.first, "time runs backwards")
        if stored.folded != stored.xregcorrelationid.casefold():
            yield Finding(stored.first, "the folded correlation id is another one's")

    def _pages(self, stored: Interaction) -> Iterator[list[_Placed]]:
        """The events of an interaction, each with what is beside it."""
        after = self.before.last
        while after < stored.last:
            found = sql.run(self._connection, _EVENTS, (after, stored.last, sql.CHUNK)).fetchall()
            if not found or found[-1][0] <= after:  # a damaged file gives rows that were not asked for, for ever
                return
            yield [_placed(row) for row in found]
            after = found[-1][0]

    def _contents(self, stored: Interaction, page: list[_Placed]) -> Iterator[Finding]:
        events = {row.position: self._event(row) for row, _, _ in page}
        kept = self._kept({event.document for event in events.values() if event and event.document})
        for row, _, head in page:
            event = events[row.position]
            if event is None:
                yield Finding(row.position, "the event cannot be read")
                continue
            if event.stream != row.stream or event.xregcorrelationid != stored.xregcorrelationid:
                yield Finding(row.position, "the event belongs to another stream or interaction")
            elif event.document and event.document not in kept:
                yield Finding(row.position, f"the document {event.document} is missing or changed")
            if head is not None and head != event.head:
                yield Finding(row.position, f"head does not say what the last event of {row.stream} left")

    def _event(self, row: LogRow) -> _Read | None:
        try:
            return _Read.of(self._mapper.of_row(row), row)
        except (ValueError, KeyError, TypeError):
            return None

    def _kept(self, documents: set[str]) -> set[str]:
        asked = sql.values(self._connection, documents)
        found = sql.run(self._connection, "SELECT sha256 FROM document WHERE sha256 {among}", (asked,))
        return {digest for (digest,) in found} - self.damaged


class _Placed(NamedTuple):
    """An event, the one before it in its stream, and the columns of the stream's head if that points at the event."""

    row: LogRow
    previous: LogRow | None
    head: tuple[Any, ...] | None


def _placed(row: Sequence[Any]) -> _Placed:
    previous, head = row[5:10], tuple(row[10:])
    return _Placed(
        members(LogRow, row[:5]),
        members(LogRow, previous) if previous[0] is not None else None,
        head if head[0] is not None else None,
    )


class _Read(NamedTuple):
    """What is checked of an event's content. head: what the stream's head says if this is its last event."""

    stream: str
    xregcorrelationid: str
    document: str | None
    head: tuple[Any, ...]

    @classmethod
    def of(cls, event: EntityEvent, row: LogRow) -> _Read:
        owner = xids.parent(event.xid)
        hash = b"" if isinstance(event, EntityDeleted) else proof.entity_hash(image_in(row.state))
        parent = xids.tree_key(owner) if owner else ""
        head = (event.revision, event.xid, event.type, parent, bool(hash), hash, pointer(event))
        return cls(event.stream, event.xregcorrelationid, document_of(event.private), head)


class _Row(NamedTuple):
    """What a row of the read model's table `entity` says of its entity."""

    tree_key: str
    xid: str
    type: str
    epoch: int
    attributes: str
    private: str


def _image(row: _Row) -> bytes:
    return image_of(row.xid, row.type, row.epoch, row.attributes.encode(), row.private.encode())


def _succession(position: int, row: LogRow, previous: LogRow | None) -> Iterator[Finding]:
    if row.position != position + 1:
        yield Finding(position + 1, "events are missing")
    if (row.revision > 1) != (previous is not None) or (previous and previous.position >= row.position):
        yield Finding(row.position, f"revision {row.revision} does not follow in the stream {row.stream}")


def _hash(row: LogRow) -> bytes:
    """What an event's entity counts in the state hash: nothing if it is apart, deleted or damaged beyond finding."""
    if xids.is_apart(row.stream) or row.topic.partition(":")[0] == EntityDeleted.TOPIC.partition(":")[0]:
        return b""
    try:
        return proof.entity_hash(image_in(row.state))
    except ValueError:
        return b""


def _heads(connection: Connection, last: int) -> Iterator[Finding]:
    for position, stream in sql.run(connection, _UNPOINTED):
        yield Finding(position, f"head does not point at the last event of {stream}")
    for (key,) in sql.run(connection, _STRAY):
        yield Finding(last, f"head has {key!r}, which no event is about")


class _Document(NamedTuple):
    sha256: str
    content: bytes


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _damaged_documents(connection: Connection) -> list[str]:
    stored = _by_key(connection, _DOCUMENTS, 50)
    return [digest for digest, content in (members(_Document, row) for row in stored) if _digest(content) != digest]


def _interactions(connection: Connection) -> Iterator[Interaction]:
    for row in _by_key(connection, _INTERACTIONS, start=0):
        yield members(Interaction, row)


def _last_interaction(connection: Connection) -> Interaction:
    row = sql.run(connection, _LAST).fetchone()
    return members(Interaction, row) if row else proof.START


def _is_beyond(key: Any, last: Any) -> bool:
    return isinstance(key, type(last)) and key > last


def _by_key(connection: Connection, statement: str, size: int = sql.CHUNK, start: str | int = "") -> Iterator[Any]:
    """Rows in pages, each page beyond the first column of the last row before."""
    last: Any = start
    while True:
        page = sql.run(connection, statement, (last, size)).fetchall()
        yield from page
        if len(page) < size or not _is_beyond(page[-1][0], last):  # a damaged key may sort before itself, for ever
            return
        last = page[-1][0]

"""Shows that a log is what was once written: counted, chained and summed anew from its first event."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from commands import proof, sql
from commands.log import Store
from commands.mapper import EventMapper, image_in, image_of
from commands.proof import Interaction, LogRow
from domain import xid as xids
from domain.events import EntityDeleted, EntityEvent

#: Called with the position reached and the last one.
Progress = Callable[[int, int], None]

_FACTS: Final = f"SELECT {', '.join(Interaction._fields)} FROM interaction"
_INTERACTIONS: Final = f"{_FACTS} WHERE last > ? ORDER BY last LIMIT ?"
_LAST: Final = f"{_FACTS} ORDER BY last DESC LIMIT 1"
_EVENTS: Final = (
    "SELECT l.position, l.stream, l.revision, l.topic, l.state, p.position, p.stream, p.revision, p.topic, p.state"
    " FROM log l LEFT JOIN log p ON p.stream = l.stream AND p.revision = l.revision - 1"
    " WHERE l.position > ? AND l.position <= ? ORDER BY l.position LIMIT ?"
)
_UNPOINTED: Final = (
    "SELECT l.position, l.stream FROM log l"
    " WHERE NOT EXISTS (SELECT 1 FROM log n WHERE n.stream = l.stream AND n.revision > l.revision)"
    " AND NOT EXISTS (SELECT 1 FROM head h WHERE h.tree_key = replace(l.stream, '/', '!')"
    " AND h.position = l.position AND h.revision = l.revision) ORDER BY l.position"
)
_LIVE: Final = "SELECT tree_key, hash FROM head WHERE live AND tree_key > ? ORDER BY tree_key LIMIT ?"
_DOCUMENTS: Final = "SELECT sha256, bytes FROM document WHERE sha256 > ? ORDER BY sha256 LIMIT ?"
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
    with _snapshot(store) as connection:
        last = sql.value(connection, "SELECT coalesce(max(position), 0) FROM log")
        walk = _Walk(connection, store.mapper, _damaged_documents(connection))
        for interaction in _interactions(connection):
            yield from walk.interaction(interaction)
            progress(interaction.last, last)
        if walk.before.last != last:
            yield Finding(walk.before.last + 1, "the log goes on after its last interaction")
        yield from _heads(connection, walk.before)


def verify_rows(store: Store) -> Iterator[Finding]:
    """Whether the rows of the read model are the entities that live at the log's end: their hashes add up to its."""
    with _snapshot(store) as connection:
        end = _last_interaction(connection)
        hashes = (
            proof.entity_hash(image_of(xid, type, epoch, attributes.encode(), private.encode()))
            for _, xid, type, epoch, attributes, private in _by_key(connection, _ROWS)
        )
        if proof.moved(proof.NOTHING, (), hashes) != end.state:
            yield Finding(end.last, "the read model's rows do not add up to the state hash")


class _Walk:
    """From interaction to interaction; `before` is the one passed last."""

    def __init__(self, connection: Connection, mapper: EventMapper, damaged: Collection[str]) -> None:
        self.before = proof.START
        self._connection = connection
        self._mapper = mapper
        self._damaged = set(damaged)

    def interaction(self, stored: Interaction) -> Iterator[Finding]:
        """What is wrong with the next interaction."""
        yield from self._facts(stored)
        chain, state, position = proof.Chain(self.before.chain, stored), self.before.state, self.before.last
        for page in self._pages(stored):
            for row, previous in page:
                chain.add(row)
                yield from _succession(position, row, previous)
                position = row.position
            state = proof.moved(state, (_hash(old) for _, old in page if old), (_hash(row) for row, _ in page))
            yield from self._contents(stored, [row for row, _ in page])
        if position != stored.last:
            yield Finding(position + 1, "events are missing")
        if chain.digest(stored.state) != stored.chain:
            yield Finding(stored.first, "the chain hash differs: the interaction or its events were changed")
        if state != stored.state:
            yield Finding(stored.first, "the state hash differs")
        self.before = stored

    def _facts(self, stored: Interaction) -> Iterator[Finding]:
        if stored.first != self.before.last + 1:
            yield Finding(self.before.last + 1, "interactions leave a gap or overlap")
        if stored.time < self.before.time:
            yield Finding(stored.first, "time runs backwards")
        if stored.folded != stored.xregcorrelationid.casefold():
            yield Finding(stored.first, "the folded correlation id is another one's")

    def _pages(self, stored: Interaction) -> Iterator[list[tuple[LogRow, LogRow | None]]]:
        """The events of an interaction, each with the one before it in its stream."""
        after = self.before.last
        while after < stored.last:
            found = sql.run(self._connection, _EVENTS, (after, stored.last, sql.CHUNK)).fetchall()
            if not found:
                return
            yield [(_log_row(row[:5]), _log_row(row[5:]) if row[5] else None) for row in found]
            after = found[-1][0]

    def _contents(self, stored: Interaction, rows: list[LogRow]) -> Iterator[Finding]:
        events = {row.position: self._event(row) for row in rows}
        kept = self._kept({event.document for event in events.values() if event and event.document})
        for row in rows:
            event = events[row.position]
            if event is None:
                yield Finding(row.position, "the event cannot be read")
            elif event.stream != row.stream or event.xregcorrelationid != stored.xregcorrelationid:
                yield Finding(row.position, "the event belongs to another stream or interaction")
            elif event.document and event.document not in kept:
                yield Finding(row.position, f"the document {event.document} is missing or changed")

    def _event(self, row: LogRow) -> _Read | None:
        try:
            return _Read.of(self._mapper.of_row(row))
        except (ValueError, KeyError, TypeError):
            return None

    def _kept(self, documents: set[str]) -> set[str]:
        asked = sql.values(self._connection, documents)
        found = sql.run(self._connection, "SELECT sha256 FROM document WHERE sha256 {among}", (asked,))
        return {digest for (digest,) in found} - self._damaged


class _Read(NamedTuple):
    """What is checked of an event's content."""

    stream: str
    xregcorrelationid: str
    document: str | None

    @classmethod
    def of(cls, event: EntityEvent) -> _Read:
        return cls(event.stream, event.xregcorrelationid, event.private.get("document"))


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


def _heads(connection: Connection, end: Interaction) -> Iterator[Finding]:
    for position, stream in sql.run(connection, _UNPOINTED):
        yield Finding(position, f"head does not point at the last event of {stream}")
    if proof.moved(proof.NOTHING, (), _counted(connection)) != end.state:
        yield Finding(end.last, "the hashes in head do not add up to the state hash")


def _counted(connection: Connection) -> Iterator[bytes]:
    """The hashes in head that count in the state hash."""
    for key, hash in _by_key(connection, _LIVE):
        if not xids.is_apart(key.replace("!", "/")):
            yield bytes(hash)


def _damaged_documents(connection: Connection) -> list[str]:
    stored = _by_key(connection, _DOCUMENTS, 50)
    return [digest for digest, content in stored if sha256(content).hexdigest() != digest]


def _interactions(connection: Connection) -> Iterator[Interaction]:
    for row in _by_key(connection, _INTERACTIONS, start=0):
        yield _interaction(row)


def _last_interaction(connection: Connection) -> Interaction:
    row = sql.run(connection, _LAST).fetchone()
    return _interaction(row) if row else proof.START


def _by_key(connection: Connection, statement: str, size: int = sql.CHUNK, start: str | int = "") -> Iterator[Any]:
    """Rows in pages, each page beyond the first column of the last row before."""
    last: Any = start
    while True:
        page = sql.run(connection, statement, (last, size)).fetchall()
        yield from page
        if len(page) < size:  # not "until a page is empty": a damaged key may sort before itself, again and again
            return
        last = page[-1][0]


def _interaction(row: Iterable[Any]) -> Interaction:
    whole = Interaction(*row)
    return whole._replace(chain=bytes(whole.chain), state=bytes(whole.state))


def _log_row(row: Iterable[Any]) -> LogRow:
    position, stream, revision, topic, state = row
    return LogRow(position, stream, revision, topic, bytes(state))


@contextmanager
def _snapshot(store: Store) -> Iterator[Connection]:
    # A SQLite transaction is a snapshot already, and knows no weaker level by this name.
    engine = store.engine
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="REPEATABLE READ")
    with engine.begin() as connection, _lenient(connection.connection.driver_connection):
        yield connection


@contextmanager
def _lenient(driver: Any) -> Iterator[None]:
    """Lets SQLite give text that is no UTF-8 any more, so that it can be found rather than fail."""
    if not isinstance(driver, sqlite3.Connection):
        yield
        return
    strict, driver.text_factory = driver.text_factory, lambda content: content.decode(errors="backslashreplace")
    try:
        yield
    finally:
        driver.text_factory = strict

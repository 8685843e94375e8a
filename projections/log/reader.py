"""Reads the log: interactions and their events, on one connection of a driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import repeat
from typing import Any, Final

from annals.commands.store.archive.state_reader import StateReader
from annals.commands.store.clock import format_time
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.correlation_ids import is_correlation_id
from annals.commands.store.hashes import NO_INTERACTION, Interaction, LogRow
from annals.commands.store.mapper import UnreadableEvent, require_bytes
from annals.domain.errors.problems import BadRequest, Problem
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.registry.events import EntityCreated
from annals.domain.replication.link import COLLECTION
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Database
from annals.projections.log.documents import document_bytes

_INTERACTION_COLUMNS: Final = "*"  # in the order of `Interaction`; an older store lacks the last ones
_EVENT_COLUMNS: Final = ", ".join(LogRow._fields)
_LAST_INTERACTION: Final = f"SELECT {_INTERACTION_COLUMNS} FROM interaction ORDER BY last DESC LIMIT 1"
_BY_CORRELATION_ID: Final = f"SELECT {_INTERACTION_COLUMNS} FROM interaction WHERE folded = ?"
_LAST_BY_POSITION: Final = f"SELECT {_INTERACTION_COLUMNS} FROM interaction WHERE last <= ? ORDER BY last DESC LIMIT 1"
_IS_OUTSIDE_TREE: Final = " OR ".join(f"stream LIKE '{start}%'" for start in xids.OUTSIDE_TREE)
#: Interactions that changed the registry's tree after a time. Entities outside the tree have interactions of their own,
#: whose times differ if the tree came from another registry. So do the times of the log's first interaction, which
#: created this registry, and of those that created registries between this one and the other.
_LATER_IN_TREE: Final = (
    "FROM interaction AS later WHERE later.time > ? AND later.first > 1 AND later.command <> 'CreateRegistry'"
    f" AND NOT (SELECT {_IS_OUTSIDE_TREE} FROM log WHERE log.position = later.last)"
)
_FIRST_LATER: Final = f"SELECT later.last {_LATER_IN_TREE} ORDER BY later.time LIMIT 1"
#: The last interaction before that position. The empty text hides the column from its index, which could otherwise be
#: used to sort half the log.
LAST_BY_TIME: Final = (
    f"SELECT {_INTERACTION_COLUMNS} FROM interaction WHERE last < coalesce(({_FIRST_LATER}), {2**63 - 1})"
    " AND time || '' <= ?"
    " ORDER BY last DESC LIMIT 1"
)
#: The first position of the log at which the tree changed later. It differs only if Groups of several registries
#: coexist. The sum keeps databases from reading the log from its beginning.
_FIRST_LATER_BEFORE: Final = f"SELECT min(later.last) {_LATER_IN_TREE} AND later.last + 0 < ?"
_LAST_BEFORE_BY_TIME: Final = (
    f"SELECT {_INTERACTION_COLUMNS} FROM interaction WHERE last < ? AND time || '' <= ? ORDER BY last DESC LIMIT 1"
)
_HAS_INTERACTION_SINCE: Final = "SELECT 1 FROM interaction WHERE time >= ? LIMIT 1"
_LAST_END_BEFORE: Final = "SELECT last FROM interaction WHERE time < ? ORDER BY time DESC, last DESC LIMIT 1"
_LAST_END_BY: Final = _LAST_END_BEFORE.replace("time <", "time <=")
#: Only a log with links has recorded interactions of other registries; `0` follows `/`.
_HAS_LINKS: Final = f"SELECT 1 FROM log WHERE stream > '{COLLECTION}/' AND stream < '{COLLECTION}0' LIMIT 1"
_POSITIONS_BETWEEN: Final = (
    "SELECT coalesce(min(first) - 1, 0), coalesce(max(last), 0) FROM interaction WHERE time >= ? AND time <= ?"
)
_INTERACTIONS_AFTER: Final = f"SELECT {_INTERACTION_COLUMNS} FROM interaction WHERE last > ? ORDER BY last LIMIT ?"
_TREE_INTERACTIONS: Final = (
    f"SELECT {_INTERACTION_COLUMNS} FROM interaction WHERE NOT (SELECT {_IS_OUTSIDE_TREE} FROM log WHERE"
    " log.position = interaction.last)"
    " ORDER BY last"
)
_SELECT_EVENTS: Final = f"SELECT {_EVENT_COLUMNS} FROM log WHERE position >= ? AND position <= ? ORDER BY position"
_SELECT_REVISIONS: Final = (
    f"SELECT {_EVENT_COLUMNS} FROM log WHERE stream = ? AND revision > ? AND position <= ? ORDER BY revision LIMIT ?"
)
_SELECT_LATEST: Final = f"SELECT {_EVENT_COLUMNS} FROM log WHERE stream = ? ORDER BY revision DESC LIMIT ?"
_CREATED: Final = f"LIKE '{EntityCreated.TOPIC.partition(':')[0]}:%'"
_SELECT_CREATIONS: Final = (
    f"SELECT {_EVENT_COLUMNS} FROM log WHERE stream = ? AND topic {_CREATED} ORDER BY revision DESC LIMIT ?"
)
_CREATION_XID: Final = (
    "SELECT h.xid FROM log l JOIN head h ON h.tree_key = replace(l.stream, '/', '!')"
    f" WHERE l.position = ? AND l.topic {_CREATED}"
)

_SELECT_EXACT: Final = f"SELECT {_EVENT_COLUMNS} FROM log WHERE (stream, revision) IN (VALUES {{}})"
#: The maximum number of events that one statement looks up.
_LOOKUP_SIZE: Final = 250

#: The last position that a client can name.
MAX_POSITION: Final = 2**63 - 1
#: Beyond the end of any log.
_BEYOND_LOG: Final = 2**62
#: Types of the columns, without those of bytes.
_INTERACTION_TYPES: Final = (int, int, *[str] * 9)
_LOG_ROW_TYPES: Final = (int, str, int, str)
#: The column of the chain hash, which that of the state hash follows.
_CHAIN_INDEX: Final = Interaction._fields.index("chain")

_POSITION_TEXT: Final = re.compile(r"[0-9]{1,19}\Z")
_TIME_START: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")


def is_position(moment: str) -> bool:
    """Whether a moment is a position; other texts are times or correlation ids, even if they are longer numbers."""
    return _POSITION_TEXT.match(moment) is not None


def check_moment(moment: str) -> None:
    """Checks the form of a moment, without a log. Raises: ValueError, OverflowError for one that no log can have."""
    if _TIME_START.match(moment):
        to_utc(moment)
    elif not (is_position(moment) or is_correlation_id(moment)):
        raise ValueError("it is neither a position, nor an RFC 3339 time, nor a correlation id")


def stored_interaction(row: Sequence[Any]) -> Interaction:
    """The interaction of a row.

    Raises: UnreadableEvent for a value of another type than its column's, which SQLite can store as well.
    """
    found = Interaction(*row)
    types = tuple(map(type, (*found[:_CHAIN_INDEX], *found[_CHAIN_INDEX + 2 :])))
    is_valid = types == _INTERACTION_TYPES and found.first <= found.last < _BEYOND_LOG
    if not is_valid or not _TIME_START.match(found.time):
        raise UnreadableEvent(f"an interaction cannot be read: {row[:3]!r}")
    return found._replace(chain=require_bytes(found.chain), state=require_bytes(found.state))


def stored_event(row: Sequence[Any], read_state: StateReader) -> LogRow:
    """The event of a row. Raises: UnreadableEvent as above; ArchiveUnavailable."""
    *columns, state = row
    if tuple(map(type, columns)) != _LOG_ROW_TYPES:
        raise UnreadableEvent(f"an event cannot be read: {columns!r}")
    return LogRow._make((*columns, decompress_state(state) if state else read_state(row[0], state)))


class Log:
    """Queries of the log. Inside a transaction all results belong to one moment.

    Methods that return events raise ArchiveUnavailable when they need the archive and cannot read it.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._read_state = StateReader(db.all)

    def head(self) -> Interaction:
        """The last interaction; `NO_INTERACTION` if there is none."""
        return self._read_one(_LAST_INTERACTION)

    def interaction(self, xregcorrelationid: str) -> Interaction | None:
        """The interaction of a correlation id, ignoring case (EV-25)."""
        if "\0" in xregcorrelationid:
            return None  # PostgreSQL refuses such a text, even in a search
        named_interaction = self._read_one(_BY_CORRELATION_ID, xregcorrelationid.casefold())
        return None if named_interaction is NO_INTERACTION else named_interaction

    def interaction_at(self, position: int) -> Interaction:
        """The last interaction that ended at or before a position; `NO_INTERACTION` if none did."""
        return self._read_one(_LAST_BY_POSITION, position)

    def interactions(self, after: int, limit: int) -> list[Interaction]:
        """The interactions that ended after a position, in order, at most `limit`."""
        return [stored_interaction(row) for row in self._db.all(_INTERACTIONS_AFTER, (after, limit))]

    def tree_interactions(self, limit: int, *, backwards: bool = False) -> list[Interaction]:
        """The first interactions that concern the registry's tree; if `backwards`, the last ones in reverse order."""
        order = " DESC LIMIT ?" if backwards else " LIMIT ?"
        return [stored_interaction(row) for row in self._db.all(_TREE_INTERACTIONS + order, (limit,))]

    def events(self, first: int, last: int) -> Iterator[LogRow]:
        """The events from one position to another, both inclusive, in order, streamed."""
        return map(stored_event, self._db.stream(_SELECT_EVENTS, (first, last)), repeat(self._read_state))

    def revisions(self, stream: str, after: int, until: int, limit: int) -> list[LogRow]:
        """Events of one stream after a revision and up to a position, in order."""
        return self._events(_SELECT_REVISIONS, (stream, after, until, limit))

    def latest(self, stream: str, limit: int) -> list[LogRow]:
        """The last events of one stream, in reverse order."""
        return self._events(_SELECT_LATEST, (stream, limit))

    def creations(self, stream: str, limit: int) -> list[LogRow]:
        """The last events of one stream that created its entity, in reverse order. Cost: O(events of the stream)."""
        return self._events(_SELECT_CREATIONS, (stream, limit))

    def creation_xid(self, position: int) -> str | None:
        """The xid, as its stream spells it last, of the entity that an event created; None for another event."""
        row = self._db.one(_CREATION_XID, (position,))
        return str(row[0]) if row else None

    def predecessors(self, rows: Sequence[LogRow]) -> Iterator[LogRow]:
        """The event before each of some events in its stream, in any order; none for the first of a stream."""
        keys = [(row.stream, row.revision - 1) for row in rows if row.revision > 1]
        for start in range(0, len(keys), _LOOKUP_SIZE):
            page = keys[start : start + _LOOKUP_SIZE]
            sql = _SELECT_EXACT.format(", ".join(["(?, ?)"] * len(page)))
            yield from self._events(sql, tuple(value for key in page for value in key))

    def document(self, sha256: str) -> bytes | None:
        """The bytes of a document that events refer to; None if it does not exist."""
        return document_bytes(self._db, sha256)

    def positions_between(self, since: str, until: str) -> tuple[int, int]:
        """The position before and the last position of everything between two times, both inclusive.

        If the log has recorded interactions of other registries, the range can also contain interactions of other
        times. The query then reads all interactions between the two times.
        """
        if self._db.one(_HAS_LINKS) is not None:
            after, end = self._db.one(_POSITIONS_BETWEEN, (since, until))
            return after, end
        last_before, last_until = self._db.one(_LAST_END_BEFORE, (since,)), self._db.one(_LAST_END_BY, (until,))
        return last_before[0] if last_before else 0, last_until[0] if last_until else 0

    def as_of(self, moment: str, now: datetime, name: str = "asof") -> Interaction:
        """The last interaction that had ended at a moment; `NO_INTERACTION` if none had (FLAG-80).

        For a time, it is the last one before the first later change of the registry's tree. Times do not only increase
        in a log that records interactions of other registries: one recorded after a later change does not count.
        moment: a position, an RFC 3339 time or a correlation id. now: the latest time that a moment may have, unless
        the log is ahead of it. name: the parameter of the moment.
        Raises: BadRequest for a malformed, unknown or future moment.
        """
        if is_position(moment):
            return self._interaction_at_position(int(moment), name)
        if _TIME_START.match(moment):
            return self._interaction_by_time(moment, format_time(now), name)
        interaction = self.interaction(moment)
        if interaction is None:
            reason = "it is neither a position, nor an RFC 3339 time, nor the correlation id of an interaction"
            raise _invalid_moment(name, moment, reason)
        return interaction

    def before(self, moment: str, now: datetime, name: str) -> Interaction:
        """The last interaction before a position or the one with a correlation id, or that had ended at a time.

        Parameters and errors: see `as_of`.
        """
        named_interaction = self.as_of(moment, now, name)
        if _TIME_START.match(moment):
            return named_interaction
        return self.interaction_at(int(moment) - 1 if is_position(moment) else named_interaction.first - 1)

    def _interaction_at_position(self, position: int, name: str) -> Interaction:
        last = self.head().last
        if position > last:
            raise _invalid_moment(name, str(position), f"the log ends at position {last}")
        return self.interaction_at(position)

    def _interaction_by_time(self, moment: str, now: str, name: str) -> Interaction:
        try:
            # A plus sign that was not escaped in a query arrives as a space.
            time_text = _with_microseconds(to_utc(f"{moment[:11]}{moment[11:].replace(' ', '+')}"))
        except (ValueError, OverflowError) as error:
            raise _invalid_moment(name, moment, str(error)) from None
        if time_text > now and not self._db.one(
            _HAS_INTERACTION_SINCE, (time_text,)
        ):  # another machine's clock may be ahead of this one's
            raise _invalid_moment(name, moment, "it is in the future")
        interaction = self._read_one(LAST_BY_TIME, time_text, time_text)
        if self._db.one(_HAS_LINKS) is None:
            return interaction
        (first_later_change,) = self._db.one(_FIRST_LATER_BEFORE, (time_text, interaction.last))
        return (
            interaction
            if first_later_change is None
            else self._read_one(_LAST_BEFORE_BY_TIME, first_later_change, time_text)
        )

    def _events(self, statement: str, values: Sequence[Any]) -> list[LogRow]:
        return [stored_event(row, self._read_state) for row in self._db.all(statement, values)]

    def _read_one(self, statement: str, *values: Any) -> Interaction:
        row = self._db.one(statement, values)
        return NO_INTERACTION if row is None else stored_interaction(row)


def _with_microseconds(time: str) -> str:
    """A time in the form of interactions; digits finer than a microsecond are cut."""
    seconds, _, fraction = time.removesuffix("Z").partition(".")
    return f"{seconds}.{fraction[:6]:0<6}Z"


def _invalid_moment(name: str, moment: str, reason: str) -> Problem:
    return BadRequest(error_detail=f'"{name}={moment}" names no moment of this registry: {reason}')

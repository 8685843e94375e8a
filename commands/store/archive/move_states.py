"""Moves states of events from the log to an archive and back, in batches, while the registry is in use.

An archive is recorded before the first state leaves the database, and forgotten after the last one is back. So each
state is in the database or in a recorded segment at each moment, wherever the work is interrupted, and repeating the
work completes it. The states of two kinds of events never leave: the last event of each stream, which is the current
state of its entity, and all events outside the registry's tree, from which services read their configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.archive.archived_segment import ArchivedSegment
from annals.commands.store.archive.state_reader import (
    ARCHIVE,
    ARCHIVED,
    archive_files,
    archive_place,
    archived_segments,
    query_of,
    state_reader,
)
from annals.commands.store.compression.log_compression import update_states
from annals.commands.store.compression.state_compression import compress_state
from annals.commands.store.database import sql, tables
from annals.commands.store.log import Store
from annals.domain.errors.http_errors import ArchiveUnavailable
from annals.domain.values import xid as xids

#: Called with the position reached and the last position.
ProgressCallback = Callable[[int, int], None]

#: Positions of a transaction; writers wait some ten milliseconds for one.
BATCH: Final = 1000

_SET_PLACE: Final = "ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_IN_TREE: Final = "".join(
    f" AND NOT (l.stream >= '{start}' AND l.stream < '{start[:-1]}0')" for start in xids.OUTSIDE_TREE
)
_IS_ARCHIVABLE: Final = (
    f"l.state <> ?{_IN_TREE} AND EXISTS (SELECT 1 FROM log n WHERE n.stream = l.stream AND n.revision > l.revision)"
)
_SELECT_ARCHIVABLE: Final = (
    f"SELECT l.position FROM log l WHERE l.position > ? AND l.position <= ? AND {_IS_ARCHIVABLE}"
)
_SELECT_ROWS: Final = (
    "SELECT position, stream, revision, topic, state FROM log WHERE position > ? AND position <= ? ORDER BY position"
)
_DELETE_ROWS: Final = "DELETE FROM log WHERE position > ? AND position <= ?"
_SELECT_ARCHIVED: Final = (
    "SELECT position FROM log WHERE position > ? AND position <= ? AND state = ? ORDER BY position"
)
_HAS_ARCHIVED: Final = "SELECT 1 FROM log WHERE position <= ? AND state = ? LIMIT 1"
_ARCHIVE_END: Final = "SELECT coalesce(max(last), 0) FROM archived_segment"
_CHAIN_AT: Final = "SELECT chain FROM interaction WHERE last = ?"


class ArchiveChanged(Exception):
    """The archive of the store is not what the caller has seen: another process has changed it meanwhile."""


def record_segments(store: Store, place: str, segments: Sequence[tuple[ArchivedSegment, bytes]]) -> None:
    """Records verified segments as the continuation of the store's archive, each with the chain hash at its end.

    Raises: ArchiveChanged, and records nothing, when they do not continue it or are not the log of this store.
    """
    with store.writing() as transaction:
        connection = transaction.connection
        query, end = query_of(connection), _archive_end(connection)
        if archive_place(query) not in (None, place):
            raise ArchiveChanged("the store has another archive")
        for segment, chain in segments:
            if segment.first != end + 1:
                raise ArchiveChanged(f"another process archived positions up to {end} meanwhile; run this again")
            if _chain_at(connection, segment.last) != chain:
                raise ArchiveChanged(f"the segment from position {segment.first} is not of this store's log")
            end = segment.last
        sql.insert(connection, tables.store, [(ARCHIVE, place)], _SET_PLACE)
        rows = [(each.last, each.first, each.path, each.bytes, each.sha256) for each, _ in segments]
        sql.insert(connection, tables.archived_segment, rows)


def move_archive(store: Store, place: str) -> None:
    """Records that the files of the archive are at another place."""
    with store.writing() as transaction:
        sql.insert(transaction.connection, tables.store, [(ARCHIVE, place)], _SET_PLACE)


def archive_states(
    store: Store, until: int, unread_until: int, progress: ProgressCallback = lambda reached, last: None
) -> int:
    """Removes the states from the database that the archive has, up to a position; returns their number.

    Begins at the first position, because an event that was the last one of its stream before may be an old one by now.
    No state leaves before the file that has it was read. unread_until: the caller has read the files of later segments.
    Raises: ArchiveUnavailable for the first file that cannot be read, after the states that the others have;
    ArchiveChanged when the archive does not reach the position.
    """
    with store.engine.begin() as connection:
        segments = archived_segments(query_of(connection))
    count, failures = 0, list[ArchiveUnavailable]()
    for segment in segments:
        last = min(segment.last, until)
        if not _has_archivable(store, segment.first - 1, last):
            continue
        try:
            if segment.first <= unread_until:
                archive_files(segment).check(segment)
        except ArchiveUnavailable as failure:
            failures.append(failure)
            continue
        for after in range(segment.first - 1, last, BATCH):
            count += _archive_batch(store, after, min(after + BATCH, last), until)
            progress(min(after + BATCH, last), until)
    with store.engine.begin() as connection:
        _check_reach(connection, until)
    if failures:
        raise failures[0]
    progress(until, until)
    return count


def restore_states(store: Store, progress: ProgressCallback = lambda reached, last: None) -> int:
    """Copies all states back into the database, and forgets the archive; returns the number of states.

    Raises: ArchiveUnavailable; then the states so far are in both places, and another run continues.
    """
    with store.engine.begin() as connection:
        until = _archive_end(connection)
    count = 0
    for after in range(0, until, BATCH):
        last = min(after + BATCH, until)
        # Before taking the lock: reading a remote file may take seconds, and what the archive has does not change.
        with store.engine.begin() as connection:
            states = _archived_states(connection, after, last)
        if states:
            with store.writing() as transaction:
                update_states(transaction.connection, states)
            count += len(states)
        progress(last, until)
    _forget_archive(store, until)
    return count


def _has_archivable(store: Store, after: int, last: int) -> bool:
    with store.engine.begin() as connection:
        return sql.scalar(connection, f"{_SELECT_ARCHIVABLE} LIMIT 1", (after, last, ARCHIVED)) is not None


def _archive_batch(store: Store, after: int, last: int, until: int) -> int:
    with store.writing() as transaction:
        _check_reach(transaction.connection, until)
        return _remove_states(transaction.connection, after, last)


def _check_reach(connection: Connection, until: int) -> None:
    """Raises: ArchiveChanged when the archive ends before a position."""
    if _archive_end(connection) < until:
        raise ArchiveChanged("the archive no longer reaches the position")


def _remove_states(connection: Connection, after: int, last: int) -> int:
    positions = {
        position for (position,) in sql.run(connection, _SELECT_ARCHIVABLE, (after, last, ARCHIVED)).fetchall()
    }
    if not positions:
        return 0
    if connection.dialect.name == "sqlite":
        # Shorter rows would leave their pages half empty for ever. Deleted and inserted rows fill pages, and new events
        # use the free ones.
        rows = sql.run(connection, _SELECT_ROWS, (after, last)).fetchall()
        sql.run(connection, _DELETE_ROWS, (after, last))
        sql.insert(connection, tables.log, [(*row[:-1], ARCHIVED) if row[0] in positions else row for row in rows])
    else:
        update_states(connection, [(ARCHIVED, position) for position in positions])
    return len(positions)


def _archived_states(connection: Connection, after: int, last: int) -> list[tuple[bytes, int]]:
    read_state = state_reader(connection)
    rows = sql.run(connection, _SELECT_ARCHIVED, (after, last, ARCHIVED)).fetchall()
    return [(compress_state(read_state(position, ARCHIVED)), position) for (position,) in rows]


def _forget_archive(store: Store, until: int) -> None:
    """Does nothing if another process has moved everything back, too, and was faster.

    Raises: ArchiveChanged when another process has archived more meanwhile.
    """
    with store.writing() as transaction:
        connection = transaction.connection
        if archive_place(query_of(connection)) is None:
            return
        if _archive_end(connection) != until or sql.scalar(connection, _HAS_ARCHIVED, (until, ARCHIVED)):
            raise ArchiveChanged("another process is archiving; run this again after it")
        sql.run(connection, "DELETE FROM archived_segment")
        sql.run(connection, f"DELETE FROM store WHERE key = '{ARCHIVE}'")


def _archive_end(connection: Connection) -> int:
    return int(sql.scalar(connection, _ARCHIVE_END))


def _chain_at(connection: Connection, position: int) -> Any:
    return sql.scalar(connection, _CHAIN_AT, (position,))

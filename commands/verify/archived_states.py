"""The states of archived events for a verification, which reads them in the order of streams and keys, too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Final, Self

from annals.commands.store.archive.archived_segment import ArchivedSegment
from annals.commands.store.archive.state_reader import ARCHIVED, archive_files, archived_segments, query_of
from annals.commands.store.compression.state_compression import compress_state, decompress_state
from annals.commands.store.hashes import LogRow
from annals.commands.store.log import Store
from annals.commands.store.mapper import UnreadableEvent
from annals.commands.verify.unchecked_rows import catch_unreadable, unchecked_row
from annals.domain.errors.http_errors import ArchiveUnavailable

#: Called with the position reached and the last position.
ProgressCallback = Callable[[int, int], None]

_HAS_ARCHIVE: Final = "SELECT 1 FROM store WHERE key = 'archive'"


class ArchivedStates:
    """The states of the archive as they are at the start, in a temporary file.

    Reading a segment for each state that is needed in another order would decode the archive thousands of times. Each
    file is read once, and compared with its hash. Without an archive, nothing is read.
    segments: of the archive. failures: the errors of those that cannot be read. damage: of the record of segments, in
    words; then no archived state can be read.
    """

    def __init__(self, store: Store, progress: ProgressCallback = lambda reached, last: None) -> None:
        self.damage: str | None = None
        self.failures: list[tuple[ArchivedSegment, ArchiveUnavailable]] = []
        # An unnamed file: SQLite keeps it in memory while it is small, and the system removes it.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"):
            self._db.execute(statement)
        self._db.execute("CREATE TABLE archived (position INTEGER PRIMARY KEY, state BLOB NOT NULL)")
        self.segments = self._find_segments(store)
        for segment in self.segments:
            self._copy(segment)
            progress(segment.last, self.segments[-1].last)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()

    def state(self, position: int, stored: Any) -> bytes:
        """The state of an event. stored: the value of its column. Raises: UnreadableEvent."""
        if stored != ARCHIVED:
            return decompress_state(stored)
        row = self._db.execute("SELECT state FROM archived WHERE position = ?", (position,)).fetchone()
        if row is None:
            raise UnreadableEvent(f"the event at position {position} has no state, and no archive has it")
        return decompress_state(row[0])

    def is_lost(self, position: int, stored: Any) -> bool:
        """Whether a state is only in a segment that cannot be read."""
        return stored == ARCHIVED and (
            self.damage is not None or any(segment.first <= position <= segment.last for segment, _ in self.failures)
        )

    def _find_segments(self, store: Store) -> list[ArchivedSegment]:
        with store.engine.connect() as connection, catch_unreadable(self._note_damage):
            connection.begin()  # never committed, because a damaged file refuses the commit
            query = query_of(connection)
            try:
                # A store of an older program has no table of segments.
                return archived_segments(query) if query(_HAS_ARCHIVE, ()) else []
            except UnreadableEvent as error:
                self._note_damage(str(error))
        return []

    def _note_damage(self, message: str) -> None:
        self.damage = message

    def _copy(self, segment: ArchivedSegment) -> None:
        try:
            states = archive_files(segment).states(segment)
            self._db.execute("BEGIN")
            self._db.executemany(
                "INSERT INTO archived VALUES (?, ?)", ((position, compress_state(state)) for position, state in states)
            )
        except ArchiveUnavailable as error:
            self.failures.append((segment, error))
        finally:
            self._db.execute("COMMIT")


def unchecked_event(row: Iterable[Any], archived: ArchivedStates) -> LogRow:
    """A row of the log like `unchecked_row`, with its state decompressed; as it is stored if that is impossible."""
    event = unchecked_row(LogRow, row)
    try:
        return event._replace(state=archived.state(event.position, event.state))
    except UnreadableEvent:
        return event

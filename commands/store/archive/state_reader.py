"""The archive of a log: segments in a folder or an object store that have the states of old events.

The table `log` keeps a row of each event, so positions, streams and revisions are always found in the database. A row
whose state is only in the archive has an empty state. Readers of rows call a `StateReader`, which returns the state
from the place where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection

from annals.commands.store.archive.archived_segment import ArchivedSegment
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.database import sql
from annals.commands.store.mapper import UnreadableEvent

if TYPE_CHECKING:
    from annals.commands.store.archive.archive_files import ArchiveFiles

#: The value of the column `state` where only the archive has the state. No stored state is empty.
ARCHIVED: Final = b""
#: The key in `store` of the archive's path or URI; it exists as long as the store has an archive.
ARCHIVE: Final = "archive"

#: Returns the rows of a query with parameters.
Query = Callable[[str, tuple[Any, ...]], Sequence[Any]]

_SELECT_PLACE: Final = f"SELECT value FROM store WHERE key = '{ARCHIVE}'"
_SELECT_SEGMENTS: Final = (
    "SELECT store.value, a.first, a.last, a.path, a.bytes, a.sha256 FROM store CROSS JOIN archived_segment a"
    f" WHERE store.key = '{ARCHIVE}' AND a.last >= ? ORDER BY a.last LIMIT ?"
)
#: More than any archive has.
_ALL: Final = 1 << 40


class StateReader:
    """Returns states of events, from the database or from the archive. query: runs on the connection of the rows."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._segment: ArchivedSegment | None = None

    def __call__(self, position: int, stored: Any) -> bytes:
        """The state of the event at a position. stored: the value of its column.

        Cost: without an archive, that of `decompress_state`. With one, reading a segment's file when it is used first,
        and then decoding a row group, unless another event of the group was read shortly before.
        Raises: UnreadableEvent, ArchiveUnavailable.
        """
        return decompress_state(stored) if stored != ARCHIVED else self._archived_state(position)

    def _archived_state(self, position: int) -> bytes:
        if self._segment is None or not self._segment.first <= position <= self._segment.last:
            self._segment = self._find_segment(position)
        return archive_files(self._segment).state(self._segment, position)

    def _find_segment(self, position: int) -> ArchivedSegment:
        segments = archived_segments(self._query, position, 1)
        if not segments or segments[0].first > position:
            raise UnreadableEvent(f"the event at position {position} has no state, and no archive has it")
        return segments[0]


def state_reader(connection: Connection) -> StateReader:
    """The reader of states on a connection with an open transaction."""
    return StateReader(query_of(connection))


def query_of(connection: Connection) -> Query:
    """Queries on a connection with an open transaction."""
    return lambda statement, parameters: sql.run(connection, statement, parameters).fetchall()


def archive_place(query: Query) -> str | None:
    """The path or URI of the store's archive; None without one."""
    rows = query(_SELECT_PLACE, ())
    return str(rows[0][0]) if rows else None


def archived_segments(query: Query, position: int = 0, limit: int = _ALL) -> list[ArchivedSegment]:
    """The segments of the archive that end at or after a position, in order. Raises: UnreadableEvent."""
    return [ArchivedSegment.of_row(row) for row in query(_SELECT_SEGMENTS, (position, limit))]


def archive_files(segment: ArchivedSegment) -> ArchiveFiles:
    """The files that this process reads.

    segment: the one that is needed. Raises: ArchiveUnavailable when the library for its file is not installed.
    """
    try:
        # Late, because most stores have no archive, and pyarrow takes long to import.
        from annals.commands.store.archive.archive_files import ARCHIVE_FILES
    except ImportError as error:
        # Without the path of the interpreter, because clients get this text.
        raise segment.unavailable(f"{error}; install pyarrow in the Python environment of Annals") from None
    return ARCHIVE_FILES

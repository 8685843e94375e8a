"""A segment of the archive, as the store records it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from annals.commands.store.mapper import UnreadableEvent
from annals.domain.errors.http_errors import ArchiveUnavailable

#: The types of the members.
_TYPES: Final = (str, int, int, str, int, str)


class ArchivedSegment(NamedTuple):
    """A segment of the archive.

    place: the archive's path or URI. first, last: positions. path: of the file of events, relative to the place. bytes,
    sha256: of this file, the hash in lower-case hex.
    """

    place: str
    first: int
    last: int
    path: str
    bytes: int
    sha256: str

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> ArchivedSegment:
        """The segment of a row. Raises: UnreadableEvent for values of other types, which SQLite can store as well."""
        if tuple(map(type, row)) != _TYPES or not 0 < row[1] <= row[2]:
            raise UnreadableEvent(f"a segment of the archive cannot be read: {row[1:4]!r:.200}")
        return cls._make(row)

    def unavailable(self, reason: str) -> ArchiveUnavailable:
        """The error for a segment that cannot be read. reason: why, in words."""
        return ArchiveUnavailable(first=self.first, last=self.last, archive=self.place, error_detail=reason)

"""A segment of the archive, as the store records it."""

from __future__ import annotations

from typing import NamedTuple

from annals.domain.errors.http_errors import ArchiveUnavailable


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

    def unavailable(self, reason: str) -> ArchiveUnavailable:
        """The error for a segment that cannot be read. reason: why, in words."""
        return ArchiveUnavailable(first=self.first, last=self.last, archive=self.place, error_detail=reason)

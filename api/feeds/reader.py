"""The state of one reader of a feed: its position, and how many events it has."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from annals.api.feeds.formats import FeedFormat, PositionLines
from annals.api.feeds.sources import FeedSource

#: Approximate maximum of bytes, and maximum of positions, in one piece of a response.
MAX_PIECE_BYTES: Final = 1 << 18
MAX_PIECE_POSITIONS: Final = 1000
#: Seconds after which a piece ends, so that readers with slow event tests leave threads to other readers.
MAX_PIECE_SECONDS: Final = 0.5


class FeedReader:
    """limit: number of events that the reader wants; None for all. position: everything up to it was checked.

    is_full: whether the reader has all events that it wants.
    """

    def __init__(self, source: FeedSource, feed_format: FeedFormat, after: int, limit: int | None) -> None:
        self.limit = limit
        self.position = after
        self.is_full = False
        self._source = source
        self._format = feed_format
        self._count = 0
        self._has_begun = False
        self._groups: Iterator[PositionLines] | None = None

    def has_reached(self, end: int) -> bool:
        """Whether nothing up to a position remains for this reader."""
        return self.is_full or self.position >= end

    def next_piece(self, end: int) -> bytes:
        """The next piece, up to a position; empty if this stretch of the log has nothing for the reader.

        end: has to stay the same from one piece to the next until the reader reaches it.
        """
        groups = self._read_groups(end)
        is_first, self._has_begun = not self._has_begun, self._has_begun or any(group.items for group in groups)
        return self._format.write(groups, is_first)

    def _read_groups(self, end: int) -> list[PositionLines]:
        groups: list[PositionLines] = []
        size, deadline = 0, time.monotonic() + MAX_PIECE_SECONDS
        self._groups = self._groups or self._source.groups(self.position, end)
        for group in self._groups:
            if not self._has_room(group):
                return groups
            groups.append(group)
            self.position = group.position
            size += sum([len(item.data) for item in group.items])
            if (
                self.is_full
                or size > MAX_PIECE_BYTES
                or len(groups) == MAX_PIECE_POSITIONS
                or time.monotonic() > deadline
            ):
                return groups
        self.position, self._groups = max(end, self.position), None
        return groups

    def _has_room(self, group: PositionLines) -> bool:
        """Whether a group fits into the limit; counts its events.

        A position is never split, so the first group may exceed the limit.
        """
        if self.limit is None:
            return True
        fits = not self._count or self._count + group.event_count <= self.limit
        self._count += group.event_count
        self.is_full = self._count >= self.limit
        return fits

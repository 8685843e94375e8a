"""Checks that a folder has the log of a store: both have the same chain hashes at the same positions."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from annals.commands.store.hashes import EMPTY_HASH
from annals.projections.database.drivers import Database
from annals.projections.log.reader import Log
from annals.projections.segments.folder import SegmentFolder
from annals.projections.segments.manifest import SegmentRange


class SegmentsMismatch(Exception):
    """The folder has another registry's log, or more than the store. position: the first one that differs."""

    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position


class SegmentsEnd(NamedTuple):
    """The end of a folder's segments: the position and the chain hash there."""

    last: int = 0
    chain: bytes = EMPTY_HASH


#: The end of an empty folder.
NO_SEGMENTS: Final = SegmentsEnd()


def matching_end(db: Database, folder: SegmentFolder) -> SegmentsEnd:
    """The end of the folder's segments, if the store's log has the same chain hash there.

    Raises: SegmentsMismatch; UnreadableManifestEntry and OSError as `SegmentFolder.entry` does.
    """
    log, ranges = Log(db), folder.ranges()
    if not ranges:
        return NO_SEGMENTS
    end = _segments_end(folder, ranges[-1])
    if _is_end_in_log(log, end):
        return end
    # A chain hash covers everything before it, so all segments after the first different one differ too.
    first_mismatch = bisect_left(ranges, True, key=lambda range: not _is_end_in_log(log, _segments_end(folder, range)))
    raise _mismatch_error(folder, log.head().last, ranges[first_mismatch], end)


def _segments_end(folder: SegmentFolder, range: SegmentRange) -> SegmentsEnd:
    return SegmentsEnd(range.last, bytes.fromhex(folder.entry(range).chain))


def _is_end_in_log(log: Log, end: SegmentsEnd) -> bool:
    interactions = log.interactions(end.last - 1, 1)
    return bool(interactions) and (interactions[0].last, interactions[0].chain) == end


def _mismatch_error(
    folder: SegmentFolder, log_end: int, differing_range: SegmentRange, end: SegmentsEnd
) -> SegmentsMismatch:
    if log_end < differing_range.last:
        return SegmentsMismatch(
            log_end + 1, f"{folder.name} goes on to position {end.last}, but the log of this store ends at {log_end}"
        )
    return SegmentsMismatch(
        differing_range.first,
        f"{folder.name} has another log than this store: they differ between the positions {differing_range.first}"
        f" and {differing_range.last}",
    )

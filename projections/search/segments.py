"""Segments: written once, merged with their neighbours as they become many.

A segment is of the tier of its size. As soon as FAN_OUT neighbours are of one tier, they become one, so that an entity
is written a few times over its life, and a search reads a few segments of each tier. While nothing else is written,
IDLE_FAN_OUT are enough.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import accumulate, groupby, takewhile
from math import log
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple

from annals.projections.database.drivers import Database
from annals.projections.search import tables
from annals.projections.search.blocks import WordBlock, WordNumbers, decode_rows, encode_rows, encode_words
from annals.projections.search.gone_numbers import Numbers, read_gone, write_gone

#: How many neighbours of one tier are merged, and the most entities of what is merged.
FAN_OUT: Final = 16
IDLE_FAN_OUT: Final = 4
MAX_MERGED: Final = 500_000
#: The most words, and numbers, of a block: a search reads a block for each word in each segment. Such blocks take some
#: 2 kB; larger ones hardly compress better, and leave a part of their pages empty.
BLOCK_WORDS: Final = 128
BLOCK_NUMBERS: Final = 1024
#: The most keys, and texts, of a block, and the most bytes of these.
BLOCK_KEYS: Final = 128
BLOCK_TEXTS: Final = 64
BLOCK_BYTES: Final = 256 << 10
#: Entities up to which a segment will be merged soon, and is put together in memory.
SOON_MERGED: Final = 3000
#: Seconds to sleep between blocks. A thread that only yields gets its turn back before another thread wakes up.
YIELD_SECONDS: Final = 0.0005
#: The part of a segment that may be gone before it is written again.
MAX_GONE: Final = 0.5

_SELECT_SEGMENTS: Final = "SELECT low, high, size FROM search_segment ORDER BY low"
_SELECT_BLOCKS: Final = "SELECT data FROM search_block WHERE segment = ? ORDER BY first"
_SELECT_ROWS: Final = "SELECT first, data FROM {} WHERE first >= ? AND first <= ? ORDER BY first"


#: Bytes at a number: those of an entity, or of a block from its first number.
_Row = tuple[int, bytes]


class Segment(NamedTuple):
    """A row of `search_segment`. gone: how many of its entities have been changed or deleted since."""

    low: int
    high: int
    size: int
    gone: int = 0

    @property
    def tier(self) -> int:
        """The tier of its size."""
        return int(log(max(self.size, 1), FAN_OUT))

    @property
    def range(self) -> tuple[int, int]:
        """Its first and last number, which no other segment has."""
        return self.low, self.high


class SegmentRows(NamedTuple):
    """A segment with its blocks: of words by their first word, of keys and texts by their first number."""

    segment: Segment
    words: Sequence[tuple[str, bytes]]
    keys: Sequence[tuple[int, bytes]]
    texts: Sequence[tuple[int, bytes]]

    def insert(self, db: Database, low: int) -> None:
        """Writes all rows. low: the number of the segment's first entity."""
        size = self.segment
        db.insert(tables.segment, [(low, low + size.high - size.low, size.size)])
        db.insert(tables.block, [(low, first, data) for first, data in self.words])
        db.insert(tables.key, [(low + first, data) for first, data in self.keys])
        db.insert(tables.text, [(low + first, data) for first, data in self.texts])


class MergedSegment(NamedTuple):
    """What some neighbours were merged to. dropped: those of their numbers that are not in it."""

    sources: Sequence[Segment]
    rows: SegmentRows
    dropped: Numbers


def new_segment(words: Mapping[str, Sequence[int]], keys: Sequence[str], texts: Sequence[bytes]) -> SegmentRows:
    """A segment of new entities, whose numbers count from 0.

    words: the numbers of entities by word. keys, texts: of the entities, the latter as of `encode_entity`.
    """
    segment = Segment(0, len(keys) - 1, len(keys))
    return _segment_rows(segment, _in_order(words), enumerate(map(str.encode, keys)), enumerate(texts))


def ranges(db: Database) -> list[tuple[int, int, int]]:
    """The first and the last number of each segment, and how many entities it has been written with."""
    return db.all(_SELECT_SEGMENTS)


def all_segments(db: Database) -> list[Segment]:
    """All segments, by their ranges. Raises: UnreadableIndex."""
    gone = read_gone(db)
    return [Segment(low, high, size, gone.range_cardinality(low, high + 1)) for low, high, size in ranges(db)]


def mergeable(segments: Sequence[Segment], fan_out: int = FAN_OUT) -> Sequence[Segment]:
    """The next segments to merge, neighbours of each other; empty if there are none. One alone has many gone."""
    for _, neighbours in groupby(segments, attrgetter("tier")):
        found = list(neighbours)
        if len(found) >= fan_out and len(fitting := _fitting(found)) > 1:
            return fitting
    # Segments in front of larger ones get no neighbours any more.
    for place in range(len(segments) - 1, 0, -1):
        pair = segments[place - 1 : place + 1]
        if pair[1].tier > pair[0].tier and _can_merge(pair):
            return pair
    return next(([segment] for segment in segments if segment.gone > segment.size * MAX_GONE), [])


def merge_segments(db: Database, segments: Sequence[Segment]) -> MergedSegment:
    """One segment with what is live of some neighbours. Cost: O(their words and numbers). Raises: UnreadableIndex."""
    low, high = segments[0].low, segments[-1].high
    dropped = read_gone(db) & Numbers(range(low, high + 1))
    gone = {number - low for number in dropped}
    sources = [_stored_words(db, segment, low) for segment in segments]
    # Lists in memory take a third of the time of merging in order, and a hundred bytes for each word of an entity.
    is_small = sum(segment.size for segment in segments) <= SOON_MERGED
    words = _in_order(_collected_words(sources, gone)) if is_small else _merged_words(sources, gone)
    keys, texts = (_stored_rows(db, table, low, high, gone) for table in ("search_key", "search_text"))
    segment = Segment(low, high, sum(segment.size for segment in segments) - len(dropped))
    return MergedSegment(segments, _segment_rows(segment, words, keys, texts), dropped)


def replace(db: Database, merged: MergedSegment) -> bool:
    """Writes what some segments were merged to. False if they exist no longer, because another process did it."""
    # By size too: a segment that was merged alone keeps its range, and has lost what was gone.
    current = set(ranges(db))
    if not all((*segment.range, segment.size) in current for segment in merged.sources):
        return False
    _delete(db, merged.sources)
    gone = read_gone(db)
    write_gone(db, gone, gone - merged.dropped)
    merged.rows.insert(db, merged.sources[0].low)
    return True


def remove_before(db: Database, number: int) -> None:
    """Removes all entities with lower numbers."""
    segments = [Segment(*row) for row in ranges(db) if row[0] < number]
    _delete(db, (segment for segment in segments if segment.high < number))
    gone = read_gone(db)
    after = gone - Numbers(range(number))
    for segment in segments:
        if segment.high >= number:  # a merge has put lower and higher ones together
            rows = _stored_rows(db, "search_key", segment.low, number - 1, ())
            numbers = (segment.low + place for place, _ in rows)
            after.update(lower for lower in numbers if lower < number)
    write_gone(db, gone, after)


def _delete(db: Database, segments: Iterable[Segment]) -> None:
    for segment in segments:
        db.run("DELETE FROM search_block WHERE segment = ?", (segment.low,))
        db.run("DELETE FROM search_key WHERE first >= ? AND first <= ?", segment.range)
        db.run("DELETE FROM search_text WHERE first >= ? AND first <= ?", segment.range)
        db.run("DELETE FROM search_segment WHERE low = ?", (segment.low,))


def _can_merge(segments: Sequence[Segment]) -> bool:
    return sum(segment.size for segment in segments) <= MAX_MERGED


def _fitting(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The first neighbours that can be merged, as many as possible; empty if there are none."""
    for start in range(len(segments)):
        sizes = accumulate(segment.size for segment in segments[start:])
        count = sum(1 for _ in takewhile(lambda size: size <= MAX_MERGED, sizes))
        if count > 1:
            return segments[start : start + count]
    return ()


def _stored_words(db: Database, segment: Segment, low: int) -> Iterator[WordNumbers]:
    for (data,) in db.all(_SELECT_BLOCKS, (segment.low,)):
        yield from WordBlock(data, segment.low - low).all()
        time.sleep(YIELD_SECONDS)


def _segment_rows(
    segment: Segment, words: Iterable[WordNumbers], keys: Iterable[_Row], texts: Iterable[_Row]
) -> SegmentRows:
    soon_merged = segment.size <= SOON_MERGED
    return SegmentRows(
        segment,
        list(_word_blocks(words, soon_merged)),
        list(_row_blocks(keys, BLOCK_KEYS, soon_merged)),
        list(_row_blocks(texts, BLOCK_TEXTS, soon_merged)),
    )


def _in_order(words: Mapping[str, Sequence[int]]) -> Iterator[WordNumbers]:
    return ((word, words[word]) for word in sorted(words))


def _collected_words(sources: Iterable[Iterator[WordNumbers]], gone: Collection[int]) -> dict[str, list[int]]:
    """The words of neighbours with their numbers. gone: the numbers to drop."""
    words: dict[str, list[int]] = {}
    for source in sources:
        for word, numbers in source:
            kept = [number for number in numbers if number not in gone] if gone else numbers
            if kept:
                words.setdefault(word, []).extend(kept)
    return words


def _merged_words(sources: Iterable[Iterator[WordNumbers]], gone: Collection[int]) -> Iterator[WordNumbers]:
    """The words of neighbours, in order. gone: the numbers to drop."""
    # Numbers of later segments are higher, so lists of numbers are in order too.
    for word, entries in groupby(merge(*sources), itemgetter(0)):
        kept = [number for _, numbers in entries for number in numbers if number not in gone]
        if kept:
            yield word, kept


def _stored_rows(db: Database, table: str, low: int, high: int, gone: Collection[int]) -> Iterator[_Row]:
    for first, data in db.all(_SELECT_ROWS.format(table), (low, high)):
        yield from ((number, row) for number, row in decode_rows(data, first - low) if number not in gone)


def _word_blocks(entries: Iterable[WordNumbers], soon_merged: bool) -> Iterator[tuple[str, bytes]]:
    pending: list[WordNumbers] = []
    count = 0
    for entry in entries:
        pending.append(entry)
        count += len(entry[1])
        if len(pending) >= BLOCK_WORDS or count >= BLOCK_NUMBERS:
            yield pending[0][0], encode_words(pending, soon_merged=soon_merged)
            pending, count = [], 0
            time.sleep(YIELD_SECONDS)
    if pending:
        yield pending[0][0], encode_words(pending, soon_merged=soon_merged)


def _row_blocks(rows: Iterable[_Row], most: int, soon_merged: bool) -> Iterator[_Row]:
    """Blocks of so many rows at most."""
    pending: list[_Row] = []
    size = 0
    for number, row in rows:
        pending.append((number, row))
        size += len(row)
        if len(pending) >= most or size >= BLOCK_BYTES:
            yield _row_block(pending, soon_merged)
            pending, size = [], 0
    if pending:
        yield _row_block(pending, soon_merged)


def _row_block(rows: Sequence[_Row], soon_merged: bool) -> _Row:
    first = rows[0][0]
    return first, encode_rows([(number - first, row) for number, row in rows], soon_merged=soon_merged)

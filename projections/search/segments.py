"""Segments: written once, merged with their neighbours as they become many.

A segment is of the tier of its size. As soon as FAN_OUT neighbours are of one tier, they become one, so that an entity
is written a few times over its life, and a search reads a few segments of each tier. While nothing else is written,
IDLE_FAN_OUT are enough.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from math import log
from operator import attrgetter
from typing import Final, NamedTuple

from annals.projections.database.drivers import Database
from annals.projections.search import tables
from annals.projections.search.blocks import WordNumbers, all_words, decode_texts, encode_texts, encode_words

#: How many neighbours of one tier are merged, and the most entities of what is merged.
FAN_OUT: Final = 16
IDLE_FAN_OUT: Final = 4
MAX_MERGED: Final = 500_000
#: The most words, and numbers, of a block: a search reads a block for each word in each segment. Such blocks take some
#: 2 kB; larger ones hardly compress better, and leave a part of their pages empty.
BLOCK_WORDS: Final = 128
BLOCK_NUMBERS: Final = 1024
#: The most entities, and bytes, of a block of texts.
BLOCK_ENTITIES: Final = 64
BLOCK_BYTES: Final = 256 << 10
#: Entities up to which a segment will be merged soon, and is put together in memory.
SOON_MERGED: Final = 3000
#: Seconds to sleep between blocks. A thread that only yields gets its turn back before another thread wakes up.
YIELD_SECONDS: Final = 0.0005
#: The part of a segment that may be gone before it is written again.
MAX_GONE: Final = 0.5

_SELECT_SEGMENTS: Final = "SELECT low, high, size, gone FROM search_segment ORDER BY low"
_SELECT_BLOCKS: Final = "SELECT data FROM search_block WHERE segment = ? ORDER BY first"
_SELECT_LIVE: Final = "SELECT number FROM search_entity WHERE number >= ? AND number <= ?"
_SELECT_TEXTS: Final = "SELECT first, data FROM search_text WHERE first >= ? AND first <= ? ORDER BY first"


class Segment(NamedTuple):
    """A row of `search_segment`."""

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
    """A segment with the rows of its blocks: of words by their first word, of texts by their first number."""

    segment: Segment
    words: Sequence[tuple[str, bytes]]
    texts: Sequence[tuple[int, bytes]]

    def insert(self, db: Database, low: int) -> None:
        """Writes all rows. low: the number of the segment's first entity."""
        size = self.segment
        db.insert(tables.segment, [size._replace(low=low, high=low + size.high - size.low)])
        db.insert(tables.block, [(low, first, data) for first, data in self.words])
        db.insert(tables.text, [(low + first, data) for first, data in self.texts])


def new_segment(words: Mapping[str, Sequence[int]], entities: Sequence[bytes]) -> SegmentRows:
    """A segment of new entities, whose numbers count from 0.

    words: the numbers of entities by word. entities: as of `encode_entity`.
    """
    segment = Segment(0, len(entities) - 1, len(entities))
    return _segment_rows(segment, _in_order(words), enumerate(entities))


def all_segments(db: Database) -> list[Segment]:
    """All segments, by their ranges."""
    return [Segment(*row) for row in db.all(_SELECT_SEGMENTS)]


def note_gone(db: Database, numbers: Iterable[int]) -> None:
    """Counts entities that are in their segments no longer; a damaged index may lack a segment."""
    lows = [segment.low for segment in all_segments(db)]
    places = (bisect_right(lows, number) for number in numbers)
    for low, count in Counter(lows[place - 1] for place in places if place).items():
        db.run("UPDATE search_segment SET gone = gone + ? WHERE low = ?", (count, low))


def mergeable(segments: Sequence[Segment], fan_out: int = FAN_OUT) -> Sequence[Segment]:
    """The next segments to merge, neighbours of each other; empty if there are none. One alone has many gone."""
    for _, neighbours in groupby(segments, attrgetter("tier")):
        found = list(neighbours)
        if len(found) >= fan_out and _can_merge(found):
            return found
    # Segments in front of larger ones get no neighbours any more.
    for place in range(len(segments) - 1, 0, -1):
        pair = segments[place - 1 : place + 1]
        if pair[1].tier > pair[0].tier and _can_merge(pair):
            return pair
    return next(([segment] for segment in segments if segment.gone > segment.size * MAX_GONE), [])


def merged(db: Database, segments: Sequence[Segment]) -> SegmentRows:
    """One segment with what is live of some neighbours. Cost: O(their words and numbers)."""
    low, high = segments[0].low, segments[-1].high
    live = {number - low for (number,) in db.all(_SELECT_LIVE, (low, high))}
    sources = [_stored_words(db, segment, low) for segment in segments]
    kept = live if any(segment.gone for segment in segments) else None
    # Lists in memory take a third of the time of merging in order, and a hundred bytes for each word of an entity.
    is_small = sum(segment.size for segment in segments) <= SOON_MERGED
    words = _in_order(_collected_words(sources, kept)) if is_small else _merged_words(sources, kept)
    return _segment_rows(Segment(low, high, len(live)), words, _stored_entities(db, low, high, live))


def replace(db: Database, segments: Sequence[Segment], merged_rows: SegmentRows) -> bool:
    """Writes what some segments were merged to. False if they exist no longer, because another process did it."""
    current = {segment.range: segment for segment in all_segments(db)}
    if not all(segment.range in current for segment in segments):
        return False
    gone_since = sum(current[segment.range].gone - segment.gone for segment in segments)
    remove(db, segments)
    rows = merged_rows._replace(segment=merged_rows.segment._replace(gone=gone_since))
    rows.insert(db, segments[0].low)
    return True


def remove(db: Database, segments: Sequence[Segment]) -> None:
    """Deletes some segments with their blocks."""
    for segment in segments:
        db.run("DELETE FROM search_block WHERE segment = ?", (segment.low,))
        db.run("DELETE FROM search_text WHERE first >= ? AND first <= ?", segment.range)
        db.run("DELETE FROM search_segment WHERE low = ?", (segment.low,))


def _can_merge(segments: Sequence[Segment]) -> bool:
    return sum(segment.size for segment in segments) <= MAX_MERGED


def _stored_words(db: Database, segment: Segment, low: int) -> Iterator[WordNumbers]:
    for (data,) in db.all(_SELECT_BLOCKS, (segment.low,)):
        yield from all_words(data, segment.low - low)
        time.sleep(YIELD_SECONDS)


def _segment_rows(segment: Segment, words: Iterable[WordNumbers], entities: Iterable[tuple[int, bytes]]) -> SegmentRows:
    soon_merged = segment.size <= SOON_MERGED
    return SegmentRows(segment, list(_word_blocks(words, soon_merged)), list(_text_blocks(entities, soon_merged)))


def _in_order(words: Mapping[str, Sequence[int]]) -> Iterator[WordNumbers]:
    return (WordNumbers(word, words[word]) for word in sorted(words))


def _collected_words(sources: Iterable[Iterator[WordNumbers]], live: Collection[int] | None) -> dict[str, list[int]]:
    """The words of neighbours with their numbers. live: the numbers to keep; None for all."""
    words: dict[str, list[int]] = {}
    for source in sources:
        for word, numbers in source:
            kept = numbers if live is None else [number for number in numbers if number in live]
            if kept:
                words.setdefault(word, []).extend(kept)
    return words


def _merged_words(sources: Iterable[Iterator[WordNumbers]], live: Collection[int] | None) -> Iterator[WordNumbers]:
    """The words of neighbours, in order. live: the numbers to keep; None for all."""
    # Numbers of later segments are higher, so lists of numbers are in order too.
    for word, entries in groupby(merge(*sources), attrgetter("word")):
        numbers = [number for entry in entries for number in entry.numbers if live is None or number in live]
        if numbers:
            yield WordNumbers(word, numbers)


def _stored_entities(db: Database, low: int, high: int, live: Collection[int]) -> Iterator[tuple[int, bytes]]:
    for first, data in db.all(_SELECT_TEXTS, (low, high)):
        yield from ((number, row) for number, row in decode_texts(data, first - low).items() if number in live)


def _word_blocks(entries: Iterable[WordNumbers], soon_merged: bool) -> Iterator[tuple[str, bytes]]:
    pending: list[WordNumbers] = []
    count = 0
    for entry in entries:
        pending.append(entry)
        count += len(entry.numbers)
        if len(pending) >= BLOCK_WORDS or count >= BLOCK_NUMBERS:
            yield pending[0].word, encode_words(pending, soon_merged=soon_merged)
            pending, count = [], 0
            time.sleep(YIELD_SECONDS)
    if pending:
        yield pending[0].word, encode_words(pending, soon_merged=soon_merged)


def _text_blocks(entities: Iterable[tuple[int, bytes]], soon_merged: bool) -> Iterator[tuple[int, bytes]]:
    pending: list[tuple[int, bytes]] = []
    size = 0
    for number, row in entities:
        pending.append((number, row))
        size += len(row)
        if len(pending) >= BLOCK_ENTITIES or size >= BLOCK_BYTES:
            yield _text_block(pending, soon_merged)
            pending, size = [], 0
    if pending:
        yield _text_block(pending, soon_merged)


def _text_block(entities: Sequence[tuple[int, bytes]], soon_merged: bool) -> tuple[int, bytes]:
    first = entities[0][0]
    return first, encode_texts(((number - first, row) for number, row in entities), soon_merged=soon_merged)

"""Reads the search index: which numbers have a word, their order, and the keys and texts of numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from heapq import merge
from itertools import islice
from typing import Final, TypeVar

from annals.domain.search.texts import SearchedEntity
from annals.domain.values.batched import batched
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import in_list
from annals.projections.entities.visibility import EVERYTHING, Visibility
from annals.projections.search.blocks import WordBlock, decode_entity, decode_rows
from annals.projections.search.gone_numbers import Numbers, read_gone
from annals.projections.search.segments import ranges
from annals.projections.search.tables import UnreadableIndex, find_position
from annals.projections.search.words_of_entity import (
    ENTITY,
    KEY,
    SEPARATOR,
    WordRange,
    group_of_word,
    groups_range,
    is_of_version,
    keys_after,
    place_of,
    word_range,
)

#: The blocks of a segment that may have words of a range: the last one that begins before it, and those that begin in
#: it. A join with the segments would make PostgreSQL read all blocks before the range.
_SELECT_BLOCKS: Final = (
    "SELECT {} FROM search_block WHERE segment = ? AND first < ?"
    " AND first >="
    " coalesce((SELECT first FROM search_block WHERE segment = ? AND first <= ? ORDER BY first DESC LIMIT 1), '')"
)
_SELECT_FIRSTS: Final = f"{_SELECT_BLOCKS.format('first')} ORDER BY first"
_SELECT_NEXT_BLOCKS: Final = f"{_SELECT_BLOCKS.format('data')} ORDER BY first LIMIT {{}}"

#: Segments that one statement reads: SQLite compounds 500 queries at most.
_SEGMENTS_TOGETHER: Final = 100
#: Blocks of texts that are read together: a megabyte.
_TEXT_BLOCKS: Final = 64
#: Blocks of keys that are read together: a megabyte.
_KEY_BLOCKS: Final = 512
#: Blocks of words that are read together while keys are read in order, at first and at most.
_FIRST_BLOCKS: Final = 4
_MAX_BLOCKS: Final = 128

_First = TypeVar("_First", int, str)


class IndexReader:
    """Reads on one connection, in the transaction of a view. visibility: what the caller sees.

    all_versions: whether Versions besides the default ones are read too.
    """

    def __init__(self, db: Database, visibility: Visibility = EVERYTHING, all_versions: bool = False) -> None:
        self._db = db
        self._visibility = visibility
        self._all_versions = all_versions

    def position(self) -> int:
        """The position of the index in the log; 0 before it is complete for the first time."""
        return find_position(self._db) or 0

    @property
    def size(self) -> int:
        """How many entities the segments have been written with."""
        return sum(size for _, _, size in self._segments)

    def numbers(self, range: WordRange) -> dict[str, Numbers]:
        """The numbers of the entities with a word in a range, by the letter of their place.

        Numbers of entities that have changed may be among them.
        """
        collected: dict[str, list[int]] = {}
        low, high = range
        for block in self._word_blocks(range):
            block.collect_numbers(low, high, collected)
        found: dict[str, Numbers] = {}
        for letter, numbers in collected.items():
            if self._all_versions or not is_of_version(letter):
                found.setdefault(place_of(letter), Numbers()).update(numbers)
        return found

    def any_of(self, words: Iterable[str], prefixes: Iterable[str] = ()) -> Numbers:
        """The numbers of the entities that have one of some words of entities, or of those with a prefix."""
        ranges = [
            *(word_range(word, False) for word in words if "\0" not in word),
            *(word_range(prefix, True) for prefix in prefixes if "\0" not in prefix),
        ]
        return Numbers().union(*(self.numbers(range).get(ENTITY, Numbers()) for range in ranges))

    def live_and_visible(self, numbers: Numbers) -> Numbers:
        """Those of some numbers that have not been changed or deleted since, and are visible to the caller."""
        live = numbers - self._gone
        return live if self._visible is None else live & self._visible

    def keys(self, numbers: Iterable[int]) -> dict[int, str]:
        """The tree keys of numbers. Cost: a block of keys for each of them at most. Raises: UnreadableIndex."""
        rows = self._rows("search_key", numbers, _KEY_BLOCKS)
        try:
            return {number: row.decode() for number, row in rows}
        except UnicodeDecodeError as error:
            raise UnreadableIndex(f"the keys of the search index cannot be read: {error}") from error

    def in_order(self, numbers: Numbers, after: str, groups: Collection[str] = ()) -> Iterator[tuple[str, int]]:
        """Live numbers with their tree keys, by these, after one of these.

        groups: lower-cased xids of the Groups that all of them are in; empty for any. Cost: O(entities between the
        first of these Groups, or of those that the caller sees, and the last entity that is read).
        """
        keys = keys_after(after, groups or self._visibility.places)
        return merge(*(self._keys_of_segment(low, high, numbers, keys) for low, high, _ in self._segments))

    def numbers_of_keys(self, keys: Iterable[str]) -> Numbers:
        """The numbers that entities have, or have had. Cost: a block of each segment for each of them at most."""
        words = sorted(KEY + key for key in keys)
        found = Numbers()
        for segment, *_ in self._segments if words else ():
            bounds = (segment, words[-1] + SEPARATOR, segment, words[0])
            by_block = _by_first([first for (first,) in self._db.all(_SELECT_FIRSTS, bounds)], words)
            condition = in_list(self._db, "first", by_block)
            query = f"SELECT first, data FROM search_block WHERE segment = ? AND {condition.text}"
            for first, data in self._db.all(query, (segment, *condition.values)):
                found.update(WordBlock(data, segment).numbers_of(by_block[first]))
        return found

    def live_entities(self, keys: Iterable[str]) -> dict[bytes, int]:
        """The numbers of the entities that have some tree keys, by their row: what `encode_entity` has returned.

        Cost: as `numbers_of_keys`, and a block of texts for each of them at most.
        """
        live = self.numbers_of_keys(keys) - self._gone
        return {row: number for number, row in self._rows("search_text", live, _TEXT_BLOCKS)}

    def entities(self, numbers: Iterable[int]) -> dict[int, SearchedEntity]:
        """The entities of numbers. Cost: a block of texts for each of them at most."""
        return {number: decode_entity(row) for number, row in self._rows("search_text", numbers, _TEXT_BLOCKS)}

    @cached_property
    def _segments(self) -> list[tuple[int, int, int]]:
        """The first and the last number of each segment, and how many entities it has been written with."""
        return ranges(self._db)

    @cached_property
    def _gone(self) -> Numbers:
        return read_gone(self._db)

    @cached_property
    def _visible(self) -> Numbers | None:
        """The numbers in visible Groups; None for all."""
        places = self._visibility.places
        if places is None:
            return None
        visible = Numbers()
        for place in places:
            groups = groups_range(place)
            for block in self._word_blocks(groups):
                for word, numbers in block.between(*groups):
                    if self._visibility.sees_group(group_of_word(word)):
                        visible.update(numbers)
        return visible

    def _word_blocks(self, range: WordRange) -> Iterator[WordBlock]:
        """The blocks of all segments that may have words of a range."""
        low, high = range
        for segments in batched(self._segments, _SEGMENTS_TOGETHER):
            query = " UNION ALL ".join([_SELECT_BLOCKS.format("segment, data")] * len(segments))
            values = [value for segment, *_ in segments for value in (segment, high, segment, low)]
            for segment, data in self._db.all(query, values):
                yield WordBlock(data, segment)

    def _keys_of_segment(self, segment: int, last: int, numbers: Numbers, keys: WordRange) -> Iterator[tuple[str, int]]:
        if not numbers.range_cardinality(segment, last + 1):
            return
        low, high = keys
        count = _FIRST_BLOCKS
        while blocks := self._db.all(_SELECT_NEXT_BLOCKS.format(count), (segment, high, segment, low)):
            for (data,) in blocks:
                block = WordBlock(data, segment)
                for word, (number, *_) in block.between(low, high):
                    if number in numbers:
                        yield word[len(KEY) :], number
            if len(blocks) < count:
                return
            # The last block is read again, as the one that may have words after its last one.
            low = block.words[-1] + SEPARATOR
            count = min(2 * count, _MAX_BLOCKS)

    def _rows(self, table: str, numbers: Iterable[int], blocks_together: int) -> Iterator[tuple[int, bytes]]:
        by_block = self._by_block(table, sorted(numbers))
        firsts = iter(by_block)
        while some := list(islice(firsts, blocks_together)):
            query = in_list(self._db, "first", some).wrap(f"SELECT first, data FROM {table} WHERE {{}}")
            for first, data in self._db.all(*query):
                yield from decode_rows(data, first, by_block[first])

    def _by_block(self, table: str, numbers: list[int]) -> dict[int, list[int]]:
        """Numbers in order by the first number of the block that has their rows."""
        if not numbers:
            return {}
        before = f"SELECT first FROM {table} WHERE first <= ? ORDER BY first DESC LIMIT 1"
        (lowest,) = self._db.one(before, (numbers[0],)) or (0,)
        between = f"SELECT first FROM {table} WHERE first >= ? AND first <= ? ORDER BY first"
        return _by_first([first for (first,) in self._db.all(between, (lowest, numbers[-1]))], numbers)


def _by_first(firsts: Sequence[_First], wanted: Iterable[_First]) -> dict[_First, list[_First]]:
    """Words or numbers, grouped by the first one of the block that may have them.

    firsts: the first words or numbers of all blocks, in order.
    """
    blocks: dict[_First, list[_First]] = {}
    for one in wanted:
        if place := bisect_right(firsts, one):
            blocks.setdefault(firsts[place - 1], []).append(one)
    return blocks

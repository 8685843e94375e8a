"""Reads the search index: which numbers have a word, and the keys and texts of numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Final

from pyroaring import BitMap64

from annals.domain.search.texts import SearchedEntity
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.sql import SqlFragment, and_, in_list
from annals.projections.entities.visibility import ALL_KEYS, EVERYTHING, Visibility
from annals.projections.log.positions import find_position
from annals.projections.search.blocks import collect_numbers, decode_entity, decode_texts
from annals.projections.search.tables import POSITION_NAME
from annals.projections.search.words_of_entity import ENTITY, WordRange, is_of_version, place_of, word_range

_SELECT_SEGMENTS: Final = "SELECT low, gone FROM search_segment ORDER BY low"
#: The blocks of a segment that may have words of a range: the last one that begins before it, and those that begin in
#: it. A join with the segments would make PostgreSQL read all blocks before the range.
_SELECT_BLOCKS: Final = (
    "SELECT segment, data FROM search_block WHERE segment = ? AND first < ?"
    " AND first >="
    " coalesce((SELECT first FROM search_block WHERE segment = ? AND first <= ? ORDER BY first DESC LIMIT 1), '')"
)
_SELECT_KEYS: Final = "SELECT number, tree_key FROM search_entity WHERE {}"
_SELECT_COUNT: Final = "SELECT count(*) FROM search_entity WHERE {}"
_SELECT_TEXTS: Final = "SELECT first, data FROM search_text WHERE {}"
_SELECT_FIRSTS: Final = "SELECT first FROM search_text WHERE first <= ? ORDER BY first DESC LIMIT 1"

#: Blocks of texts that are read together: a megabyte.
_BLOCKS_TOGETHER: Final = 64

#: Compressed bitmaps: the union and the intersection of many numbers take microseconds.
Numbers = BitMap64


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
        return find_position(self._db, POSITION_NAME) or 0

    def numbers(self, range: WordRange) -> dict[str, Numbers]:
        """The numbers of the entities with a word in a range, by the letter of their place.

        Numbers of entities that have changed may be among them.
        """
        collected: dict[str, list[int]] = {}
        low, high = range
        query = " UNION ALL ".join([_SELECT_BLOCKS] * len(self._segments))
        values = [value for segment, _ in self._segments for value in (segment, high, segment, low)]
        for segment, data in self._db.all(query, values) if self._segments else ():
            collect_numbers(data, segment, low, high, collected)
        found: dict[str, Numbers] = {}
        for letter, numbers in collected.items():
            if self._all_versions or not is_of_version(letter):
                found.setdefault(place_of(letter), Numbers()).update(numbers)
        return found

    @cached_property
    def _segments(self) -> list[tuple[int, int]]:
        """The first number of each segment, and how many of its entities are gone."""
        return self._db.all(_SELECT_SEGMENTS)

    def any_of(self, words: Iterable[str], prefixes: Iterable[str] = ()) -> Numbers:
        """The numbers of the entities that have one of some words of entities, or of those with a prefix."""
        ranges = [*(word_range(word, False) for word in words), *(word_range(prefix, True) for prefix in prefixes)]
        return Numbers().union(*(self.numbers(range).get(ENTITY, Numbers()) for range in ranges))

    def keys(self, numbers: Collection[int]) -> dict[int, str]:
        """The tree keys of those of some numbers that are live and visible."""
        return dict(self._db.all(*and_(in_list(self._db, "number", numbers), self._visible()).wrap(_SELECT_KEYS)))

    def count(self, numbers: Collection[int]) -> int:
        """How many of some numbers are live and visible."""
        query = and_(in_list(self._db, "number", numbers), self._visible()).wrap(_SELECT_COUNT)
        count: int = self._db.one(*query)[0]
        return count

    def least_count(self, count: int) -> int:
        """How many of so many numbers are live and visible at least, without a look at them."""
        return count - sum(gone for _, gone in self._segments) if self._visibility == EVERYTHING else 0

    def keys_in_order(self, after: str) -> Iterator[tuple[int, str]]:
        """All numbers that are live and visible, by their tree keys, after one of these; streamed."""
        query = and_(SqlFragment("tree_key > ?", (after,)), self._visible()).wrap(_SELECT_KEYS)
        return self._db.stream(f"{query.text} ORDER BY tree_key", query.values)

    def entities(self, numbers: Collection[int]) -> dict[int, SearchedEntity]:
        """The entities of live numbers. Cost: a block of texts for each of them at most."""
        found: dict[int, SearchedEntity] = {}
        by_block = self._by_text_block(sorted(numbers))
        blocks = iter(by_block)
        while some := list(islice(blocks, _BLOCKS_TOGETHER)):
            for first, data in self._db.all(*in_list(self._db, "first", some).wrap(_SELECT_TEXTS)):
                rows = decode_texts(data, first)
                found |= {number: decode_entity(rows[number]) for number in by_block[first] if number in rows}
        return found

    def _by_text_block(self, numbers: list[int]) -> dict[int, list[int]]:
        """Numbers in order by the block that has their texts."""
        if not numbers:
            return {}
        (lowest,) = self._db.one(_SELECT_FIRSTS, (numbers[0],)) or (0,)
        between = "SELECT first FROM search_text WHERE first >= ? AND first <= ? ORDER BY first"
        firsts = [first for (first,) in self._db.all(between, (lowest, numbers[-1]))]
        blocks: dict[int, list[int]] = {}
        for number in numbers:
            if place := bisect_right(firsts, number):
                blocks.setdefault(firsts[place - 1], []).append(number)
        return blocks

    def _visible(self) -> SqlFragment:
        return self._visibility.tree_keys(self._db, "tree_key", *ALL_KEYS).wrap("({})")

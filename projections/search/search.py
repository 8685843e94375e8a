"""Answers a query from the index: the results of one page in their order, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from annals.domain.search.matching import FIRST_PLACE, ID_EQUAL, ID_PREFIX, UNRANKED, ResultKey, rank
from annals.domain.search.query import Query, Term
from annals.domain.search.texts import SearchedEntity, TextPlace
from annals.domain.values.batched import batched
from annals.projections.search.gone_numbers import Numbers
from annals.projections.search.index_reader import IndexReader
from annals.projections.search.words_of_entity import (
    ENTITY,
    FORMAT,
    GROUP,
    LETTERS,
    TYPE,
    id_range,
    pair_ranges,
    word_range,
)

#: Results up to which they are counted.
MAX_COUNT: Final = 1000
#: Results up to which all are sorted for a page: a part of the entities, within these bounds. Sorting reads a block of
#: keys for each; reading all keys in order ends with the page, but has to read all blocks if the results are the last.
MIN_SORTED: Final = 256
MAX_SORTED: Final = 2000
_SORTED_PART: Final = 512
#: Numbers whose texts are read together to count those that match.
_COUNTED_TOGETHER: Final = 1024
#: Numbers whose texts are read together for a page.
_VERIFIED_TOGETHER: Final = 32
_NOTHING: Final = Numbers()


class SearchResult(NamedTuple):
    """An entity that matches. key: where it is in the order of results."""

    key: ResultKey
    entity: SearchedEntity


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Some results in order. count: of all, at most MAX_COUNT; more: whether there are more than that.

    next: the key of the last result of this page if there are further ones.
    """

    results: list[SearchResult]
    count: int
    more: bool
    next: ResultKey | None


def search(index: IndexReader, query: Query, limit: int, after: ResultKey | None = None) -> ResultPage:
    """A page of results. after: the key that the page follows on.

    Cost: O(entities that have one of the words). Besides, O(results) with few of them, see MAX_SORTED, otherwise
    O(entities before the last result of the page), in the Groups that are searched or visible.
    """
    candidates = Candidates(index, query)
    found = candidates.all
    if len(found) <= _max_sorted(index):
        ranked = _ranked(candidates, found)
        following = sorted((key, number) for number, key in ranked.items() if after is None or key > after)
        page, count, more = following[: limit + 1], min(len(ranked), MAX_COUNT), len(ranked) > MAX_COUNT
    else:
        page = list(islice(_ordered(candidates, after or ResultKey(0, "")), limit + 1))
        total = _count(candidates, found)
        count, more = min(total, MAX_COUNT), total > MAX_COUNT
    entities = index.entities([number for _, number in page[:limit]])
    results = [SearchResult(key, entities[number]) for key, number in page[:limit] if number in entities]
    return ResultPage(results, count, more, page[limit - 1][0] if len(page) > limit else None)


class _TermNumbers(NamedTuple):
    """The numbers that have a term, by place. unsure: those that have its parts, but maybe not in one text in order."""

    places: Mapping[TextPlace, Numbers]
    unsure: Numbers = _NOTHING


@dataclass(frozen=True)
class Candidates:
    """The numbers that match a query, by what the index says: those of live entities that the caller sees.

    A term of several parts is among the words of an entity as a whole, where it is one word there, or in parts.
    """

    index: IndexReader
    query: Query

    @cached_property
    def all(self) -> Numbers:
        """All of them."""
        return self.up_to(TextPlace.DESCRIPTION)

    def up_to(self, last: TextPlace) -> Numbers:
        """Those that have each term at a place up to one."""
        sets = [
            _union(term.places.get(place, _NOTHING) for place in TextPlace if place <= last) for term in self._terms
        ]
        return self.index.live_and_visible(_intersection([*sets, *self._filters]))

    def by_rank(self) -> Iterator[tuple[int, Numbers]]:
        """The numbers of each rank, from the best; a number may be in later ones too."""
        if not self.query.terms:
            yield UNRANKED, self.all
            return
        if TextPlace.ID in self.query.places:
            for id_rank, is_prefix in ((ID_EQUAL, False), (ID_PREFIX, True)):
                ids = self.index.numbers(id_range(self.query.joined, is_prefix)).get(ENTITY, _NOTHING)
                yield id_rank, ids & self.all
        for place in self.query.places:
            yield FIRST_PLACE + place, self.up_to(place)

    @cached_property
    def unsure(self) -> Numbers:
        """Those of `all` whose texts tell whether they match, and at which place."""
        return _union(term.unsure for term in self._terms) & self.all

    def ranks(self, numbers: Iterable[int]) -> dict[int, int]:
        """The ranks of those of some live numbers that match. Cost: their texts, which are read once."""
        asked = list(numbers)
        entities = self.index.entities(number for number in asked if number not in self._known_ranks)
        self._known_ranks.update((number, rank(self.query, entity)) for number, entity in entities.items())
        known_ranks = ((number, self._known_ranks.get(number)) for number in asked)
        return {number: one for number, one in known_ranks if one is not None}

    @cached_property
    def _known_ranks(self) -> dict[int, int | None]:
        return {}

    @cached_property
    def _terms(self) -> list[_TermNumbers]:
        return [self._term(term) for term in self.query.terms]

    def _term(self, term: Term) -> _TermNumbers:
        if len(term.parts) == 1:
            return _TermNumbers(self._places(term.parts[0], term.is_prefix))
        wholes = self._places(term.whole, term.is_prefix) if term.whole else {}
        *beginning, last = term.parts
        parts = [*(self._places(part, False) for part in beginning), self._places(last, term.is_prefix)]
        places: dict[TextPlace, Numbers] = {}
        unsure = Numbers()
        for place in self.query.places:
            pairs = (self.index.numbers(pair).get(ENTITY, _NOTHING) for pair in pair_ranges(term, place))
            in_parts = _intersection([*(part.get(place, _NOTHING) for part in parts), *pairs])
            unsure |= in_parts - wholes.get(place, _NOTHING)
            places[place] = wholes.get(place, _NOTHING) | in_parts
        return _TermNumbers(places, unsure)

    def _places(self, word: str, is_prefix: bool) -> dict[TextPlace, Numbers]:
        found = self.index.numbers(word_range(word, is_prefix))
        return {place: found[LETTERS[place]] for place in self.query.places if LETTERS[place] in found}

    @cached_property
    def _filters(self) -> list[Numbers]:
        """The numbers that pass each filter."""
        query, any_of = self.query, self.index.any_of
        filters: list[tuple[Collection[str], Callable[[], Numbers]]] = [
            (query.types, lambda: any_of(TYPE + type for type in query.types)),
            (query.groups, lambda: any_of(GROUP + group for group in query.groups)),
            (
                query.formats,
                lambda: any_of((FORMAT + one for one in query.formats), (f"{FORMAT}{one}/" for one in query.formats)),
            ),
        ]
        return [passing() for values, passing in filters if values]


def _union(sets: Iterable[Numbers]) -> Numbers:
    return Numbers().union(*sets)


def _intersection(sets: Iterable[Numbers]) -> Numbers:
    first, *others = sets
    return first.intersection(*others) if others else first


def _ranked(candidates: Candidates, numbers: Numbers) -> dict[int, ResultKey]:
    """The keys of those of few candidates that match."""
    ranks = candidates.ranks(candidates.unsure)
    others = numbers - candidates.unsure
    for one, with_rank in candidates.by_rank():
        ranks |= dict.fromkeys(with_rank & others, one)
        others -= with_rank
    return {number: ResultKey(ranks[number], key) for number, key in candidates.index.keys(ranks).items()}


def _ordered(candidates: Candidates, after: ResultKey) -> Iterator[tuple[ResultKey, int]]:
    """The keys of many candidates in order, after one of them, with their numbers."""
    seen = Numbers()
    for one, with_rank in candidates.by_rank():
        numbers = with_rank - seen
        if one >= after.rank:
            yield from _in_tree_order(candidates, one, numbers, after.tree_key if one == after.rank else "")
        seen |= numbers - candidates.unsure  # an unsure one may be of a later rank


def _in_tree_order(
    candidates: Candidates, expected_rank: int, numbers: Numbers, after: str
) -> Iterator[tuple[ResultKey, int]]:
    """Those of one rank. Few are sorted; among many, the first ones are found soon in the order of all."""
    index = candidates.index
    if len(numbers) <= _max_sorted(index):
        keys = ((key, number) for number, key in index.keys(numbers).items() if key > after)
        in_order: Iterator[tuple[str, int]] = iter(sorted(keys))
    else:
        in_order = index.in_order(numbers, after, candidates.query.groups)
    while some := list(islice(in_order, _VERIFIED_TOGETHER)):
        ranks = candidates.ranks([number for _, number in some if number in candidates.unsure])
        for tree_key, number in some:
            if number not in candidates.unsure or ranks.get(number) == expected_rank:
                yield ResultKey(expected_rank, tree_key), number


def _max_sorted(index: IndexReader) -> int:
    return min(max(index.size // _SORTED_PART, MIN_SORTED), MAX_SORTED)


def _count(candidates: Candidates, numbers: Numbers) -> int:
    """How many candidates match; counts until there are more than MAX_COUNT."""
    count = len(numbers - candidates.unsure)
    # In the order of their numbers, because neighbours share blocks of texts.
    for some in batched(candidates.unsure, _COUNTED_TOGETHER):
        if count > MAX_COUNT:
            break
        count += len(candidates.ranks(some))
    return count

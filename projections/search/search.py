"""Answers a query from the index: the results of one page in their order, and how many there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import islice
from typing import Final, NamedTuple

from annals.domain.search.matching import FIRST_PLACE, ID_EQUAL, ID_PREFIX, UNRANKED, ResultKey, rank
from annals.domain.search.query import Query, Term
from annals.domain.search.texts import SearchedEntity, TextPlace
from annals.projections.search.index_reader import IndexReader, Numbers
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

#: Results up to which they are counted, and up to which all are sorted for a page.
MAX_COUNT: Final = 1000
MAX_SORTED: Final = 2000
#: Numbers that are looked up together to count them.
_COUNTED_TOGETHER: Final = 500
_NOTHING: Final[Numbers] = set()


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

    Cost: O(entities that have one of the words); with few results in all, O(results) besides.
    """
    candidates = Candidates(index, query)
    found = candidates.all
    if len(found) <= MAX_SORTED:
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


@dataclass(frozen=True)
class Candidates:
    """The numbers that match a query, by what the index says. Some may be of entities that have changed since.

    A term of several parts is among the words of an entity in parts only, so its candidates have to be verified.
    """

    index: IndexReader
    query: Query

    @property
    def is_exact(self) -> bool:
        """Whether all candidates match."""
        return all(len(term.parts) == 1 for term in self.query.terms)

    @cached_property
    def all(self) -> Numbers:
        """All of them."""
        return self.up_to(TextPlace.DESCRIPTION)

    def up_to(self, last: TextPlace) -> Numbers:
        """Those that have each term at a place up to one."""
        sets = [
            set().union(*(found.get(place, _NOTHING) for place in TextPlace if place <= last)) for found in self._terms
        ]
        return _intersection([*sets, *self._filters])

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
    def _terms(self) -> list[Mapping[TextPlace, Numbers]]:
        """The numbers that have each term, by place."""
        return [dict(self._term(term)) for term in self.query.terms]

    def _term(self, term: Term) -> Iterator[tuple[TextPlace, Numbers]]:
        if len(term.parts) == 1:
            yield from self._places(term.parts[0], term.is_prefix).items()
            return
        wholes = self._places(term.whole, term.is_prefix) if term.whole else {}
        *beginning, last = term.parts
        parts = [*(self._places(part, False) for part in beginning), self._places(last, term.is_prefix)]
        for place in self.query.places:
            pairs = (self.index.numbers(pair).get(ENTITY, _NOTHING) for pair in pair_ranges(term, place))
            in_parts = _intersection([*(part.get(place, _NOTHING) for part in parts), *pairs])
            yield place, wholes.get(place, _NOTHING) | in_parts

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


def _intersection(sets: list[Numbers]) -> Numbers:
    smallest, *others = sorted(sets, key=len)
    return reduce(set.intersection, others, smallest) if smallest else set()


def _ranked(candidates: Candidates, numbers: Numbers) -> dict[int, ResultKey]:
    """The keys of those of few candidates that are live, visible, and match."""
    tree_keys = candidates.index.keys(numbers)
    if not candidates.is_exact:
        entities = candidates.index.entities(tree_keys)
        ranks = {number: rank(candidates.query, entity) for number, entity in entities.items()}
        return {number: ResultKey(one, tree_keys[number]) for number, one in ranks.items() if one is not None}
    ranked: dict[int, ResultKey] = {}
    for one, with_rank in candidates.by_rank():
        for number in with_rank & tree_keys.keys() - ranked.keys():
            ranked[number] = ResultKey(one, tree_keys[number])
    return ranked


def _ordered(candidates: Candidates, after: ResultKey) -> Iterator[tuple[ResultKey, int]]:
    """The keys of many candidates in order, after one of them, with their numbers."""
    seen: Numbers = set()
    for one, with_rank in candidates.by_rank():
        numbers = with_rank - seen
        seen |= numbers
        if one >= after.rank:
            yield from _in_tree_order(candidates, one, numbers, after.tree_key if one == after.rank else "")


def _in_tree_order(
    candidates: Candidates, expected_rank: int, numbers: Numbers, after: str
) -> Iterator[tuple[ResultKey, int]]:
    """Those of one rank. Few are sorted; among many, the first ones are found soon in the order of all."""
    index = candidates.index
    if len(numbers) <= MAX_SORTED:
        in_order: Iterable[tuple[int, str]] = sorted(index.keys(numbers).items(), key=lambda item: item[1])
    else:
        in_order = index.keys_in_order(after)
    for number, tree_key in in_order:
        if number in numbers and tree_key > after and (candidates.is_exact or _matches(candidates, number)):
            yield ResultKey(expected_rank, tree_key), number


def _matches(candidates: Candidates, number: int) -> bool:
    entity = candidates.index.entities([number]).get(number)
    return entity is not None and rank(candidates.query, entity) is not None


def _count(candidates: Candidates, numbers: Numbers) -> int:
    """How many candidates are live and visible, and match; counts until there are more than MAX_COUNT."""
    in_order, count = iter(sorted(numbers)), 0  # neighbours share blocks of texts
    while count <= MAX_COUNT and (some := list(islice(in_order, _COUNTED_TOGETHER))):
        if candidates.is_exact:
            count += candidates.index.count(some)
        else:
            entities = candidates.index.entities(candidates.index.keys(some))
            count += sum(rank(candidates.query, entity) is not None for entity in entities.values())
    return count

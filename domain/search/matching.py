"""Which entities match a query, where, and in which order they are answered.

These functions say what is right; the index of `projections/search` answers the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from annals.domain.search.query import Query, Term, joined_parts
from annals.domain.search.texts import SearchedEntity, Text, TextPlace
from annals.domain.search.words import Parts, located_units, may_contain, parts, units, whole
from annals.domain.values import xid as xids

#: The ranks above those of places: the id is the query, or begins with it.
ID_EQUAL: Final = 0
ID_PREFIX: Final = 1
#: The rank of a match at a place is this number more.
FIRST_PLACE: Final = 2
#: The rank of all that match a query of filters only.
UNRANKED: Final = FIRST_PLACE
_place: Final = attrgetter("place")


class ResultKey(NamedTuple):
    """The order of results: by rank, then by xid. tree_key: of the xid, which ignores case."""

    rank: int
    tree_key: str


def rank(query: Query, entity: SearchedEntity) -> int | None:
    """The rank of an entity, lower is better; None if it does not match.

    It is that of the first place up to which all terms are found. A query that is an id, or begins one, ranks before.
    """
    if not _passes(query, entity):
        return None
    if not query.terms:
        return UNRANKED
    worst = 0
    texts = sorted((text for text in entity.texts if text.place in query.places), key=_place)
    for term in query.terms:
        best = next((text.place for text in texts if term_matches(term, text)), None)
        if best is None:
            return None
        worst = max(worst, best)
    return id_rank(query, xids.entity_id(entity.xid), FIRST_PLACE + worst)


def id_rank(query: Query, id: str, rank: int) -> int:
    """A better rank than a given one if the query is an id, or begins with it."""
    if TextPlace.ID in query.places:
        own = joined_parts(parts(id))
        if own == query.joined:
            return ID_EQUAL
        if own.startswith(query.joined):
            return ID_PREFIX
    return rank


def matches(query: Query, entity: SearchedEntity) -> Iterator[Text]:
    """The texts in which a term of a query is found, in order of their places."""
    for text in sorted(entity.texts, key=_place):
        if text.place in query.places and any(term_matches(term, text) for term in query.terms):
            yield text


def term_matches(term: Term, text: Text) -> bool:
    """Whether a term is found in a text."""
    if not may_contain(text.text, term.joined):
        return False
    found = list(units(text.text))
    if term.whole and any(_equal_word(term.is_prefix)(whole(unit), term.whole) for unit in found):
        return True
    return _has_sequence([part for unit in found for part in unit], term.parts, term.is_prefix)


def _passes(query: Query, entity: SearchedEntity) -> bool:
    """Whether an entity passes the filters."""
    stream = xids.stream(entity.xid)
    return (
        (not query.types or entity.type in query.types)
        and (not query.groups or any(stream == group or stream.startswith(f"{group}/") for group in query.groups))
        and (not query.formats or any(format_matches(entity.format, format) for format in query.formats))
    )


def format_matches(format: str, wanted: str) -> bool:
    """Whether a format is another one, or one of its versions; both in lower case."""
    return format == wanted or format.startswith(f"{wanted}/")


def _has_sequence(found: Sequence[str], wanted: Parts, is_prefix: bool) -> bool:
    *beginning, last = wanted
    length = len(beginning)
    return any(
        list(found[place - length : place]) == beginning and _equal_word(is_prefix)(found[place], last)
        for place in range(length, len(found))
    )


def _equal_word(is_prefix: bool) -> Callable[[str, str], bool]:
    return str.startswith if is_prefix else str.__eq__


def marked(query: Query, text: str) -> Iterator[tuple[str, bool]]:
    """A text in pieces, each with whether it is a unit that a term of a query is in."""
    end = 0
    for start, unit_end, unit in located_units(text):
        if any(_is_in_unit(term, unit) for term in query.terms):
            yield text[end:start], False
            yield text[start:unit_end], True
            end = unit_end
    yield text[end:], False


def _is_in_unit(term: Term, unit: Parts) -> bool:
    """Whether a unit has one of the parts of a term, or is the whole of it."""
    *beginning, last = term.parts
    is_last = _equal_word(term.is_prefix)
    is_whole = bool(term.whole) and is_last(whole(unit), term.whole)
    return is_whole or any(part in beginning or is_last(part, last) for part in unit)

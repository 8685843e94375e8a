"""Queries of a search: `orders "unit price" type:schemagroups.schemas in:field tot`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from annals.domain.search.texts import TextPlace
from annals.domain.search.words import Parts, units, whole
from annals.domain.values import xid as xids

MAX_CHARACTERS: Final = 256
MAX_WORDS: Final = 10
#: The prefixes that narrow a search.
PREFIXES: Final = ("type", "group", "format", "in")
#: One element: a prefix if there is one, and a phrase or what is before the next space.
_ELEMENT: Final = re.compile(r'(?:([A-Za-z]+):)?(?:"([^"]*)("?)|([^\s"]*))')
_PLACES: Final = {place.word: place for place in TextPlace}


class InvalidQuery(ValueError):
    """A query cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Term:
    """What an entity has to have: parts, one behind the other in one text.

    whole: a single word that is found as well; empty for a phrase of several units. is_prefix: the last part, and the
    whole, may go on.
    """

    parts: Parts
    whole: str
    is_prefix: bool = False

    @property
    def joined(self) -> str:
        """All parts as one word, as far as characters of a word count."""
        return whole(self.parts)


@dataclass(frozen=True, slots=True)
class Query:
    """A query: all terms have to match, and one of the values of each filter, if it has any.

    types: of entities. groups: lower-cased xids. formats: lower-cased, with or without their version. places: where the
    terms have to match.
    """

    terms: tuple[Term, ...] = ()
    types: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    places: tuple[TextPlace, ...] = tuple(TextPlace)

    @property
    def joined(self) -> str:
        """All terms as one word, which may be an id."""
        return joined_parts([part for term in self.terms for part in term.parts])


def joined_parts(parts: list[str]) -> str:
    """Parts as one word, to compare with ids."""
    return "".join(parts)


@dataclass(slots=True)
class _Elements:
    words: list[tuple[str, bool]] = field(default_factory=list)
    filters: dict[str, list[str]] = field(default_factory=dict)


def parse_query(text: str) -> Query:
    """The query in a text. Raises: InvalidQuery."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidQuery(f"it has {len(text)} characters; {MAX_CHARACTERS} are allowed")
    elements = _read_elements(text)
    if (count := sum(len(word.split()) for word, _ in elements.words)) > MAX_WORDS:
        raise InvalidQuery(f"it has {count} words; {MAX_WORDS} are allowed")
    terms = _terms(elements.words)
    if not terms and (elements.words or not elements.filters.keys() - {"in"}):
        raise InvalidQuery("it has no word; write letters or digits to search for")
    filters = elements.filters
    return Query(
        terms,
        tuple(map(_type, filters.get("type", ()))),
        tuple(map(_group, filters.get("group", ()))),
        tuple(map(_format, filters.get("format", ()))),
        tuple(sorted(set(map(_place, filters.get("in", ()))))) or tuple(TextPlace),
    )


def _terms(words: Sequence[tuple[str, bool]]) -> tuple[Term, ...]:
    """The terms of words, each with whether it is a phrase. The last one is a prefix if it is none."""
    terms = []
    for number, (word, is_phrase) in enumerate(words, 1):
        if found := list(units(word)):
            parts = tuple(part for unit in found for part in unit)
            is_prefix = number == len(words) and not is_phrase
            terms.append(Term(parts, whole(found[0]) if len(found) == 1 else "", is_prefix))
    return tuple(terms)


def _read_elements(text: str) -> _Elements:
    elements, position = _Elements(), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _ELEMENT.match(text, position)
        assert match is not None, "the pattern matches any text"
        prefix, phrase, closing, word = match.groups()
        if phrase is not None and not closing:
            raise InvalidQuery("a quotation mark is not closed")
        if prefix is None:
            elements.words.append((word if phrase is None else phrase, phrase is not None))
        else:
            elements.filters.setdefault(_known_prefix(prefix), []).append(word if phrase is None else phrase)
        position = match.end()
    return elements


def _known_prefix(prefix: str) -> str:
    if prefix.lower() not in PREFIXES:
        known = ", ".join(f'"{name}:"' for name in PREFIXES)
        raise InvalidQuery(f'the prefix "{prefix}:" is unknown; there are {known}. Put text with a colon in quotes')
    return prefix.lower()


def _type(value: str) -> str:
    return _required("type", value, "a type such as schemagroups.schemas").lower()


def _format(value: str) -> str:
    return _required("format", value, "a format such as Avro or Avro/1.11").lower()


def _group(value: str) -> str:
    xid = xids.stream("/" + value.strip("/"))
    if len(xids.segments(xid)) != 2:
        raise InvalidQuery(f'"group:{value}" is no Group; it takes an xid such as /schemagroups/orders')
    return xid


def _place(value: str) -> TextPlace:
    if value.lower() not in _PLACES:
        raise InvalidQuery(f'"in:{value}" is no place; there are {", ".join(_PLACES)}')
    return _PLACES[value.lower()]


def _required(name: str, value: str, example: str) -> str:
    if not value:
        raise InvalidQuery(f'"{name}:" takes {example}')
    return value

"""The words under which the index has an entity.

A word ends with a tab and a letter that says where it is, so that a range of words has all places of a word, or of all
words with a prefix. Letters of Versions are small. Other kinds of words begin with a character that no word has first:

- `=orderplaced`: the whole id, to find equal ids and those with a prefix;
- `#4f2`: a part and how the next one begins, as a hash; different pairs may share one;
- `!t`, `!g`, `!f`: the type, the Group and the format;
- `!k`: the tree key, without a letter. By it a changed entity is found, and all entities in the order of results.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise
from typing import Final
from zlib import crc32

from annals.domain.access.places import WILDCARD, is_pattern
from annals.domain.access.roles import group_of
from annals.domain.search.query import Term, joined_parts
from annals.domain.search.texts import SearchedEntity, TextPlace
from annals.domain.search.words import parts, units, whole
from annals.domain.values import xid as xids

#: The letter of each place.
LETTERS: Final = "INLFD"
#: The letter of words that are of the entity itself.
ENTITY: Final = "E"
#: Texts without spaces whose words stay known, and the most characters of such a text.
_CACHED_TEXTS: Final = 10_000
_CACHED_LENGTH: Final = 50
#: Pairs whose words stay known.
_CACHED_PAIRS: Final = 1 << 15
#: Sorts before all characters of words.
SEPARATOR: Final = "\t"
_LAST: Final = chr(sys.maxunicode)
#: Sorts above the tree keys of all that is in a Group, behind the key of the Group itself.
_AFTER_SUBTREE: Final = '"'
_PAIR_HASHES: Final = 0xFFF
#: The characters of the second part that count: with them, a pair is found as soon as they are typed.
_PAIR_BEGINNING: Final = 2

TYPE: Final = "!t"
GROUP: Final = "!g"
FORMAT: Final = "!f"
KEY: Final = "!k"
_ID: Final = "="

#: A range of words: from one (inclusive) to another (exclusive).
WordRange = tuple[str, str]


def entity_words(entity: SearchedEntity) -> set[str]:
    """All words of an entity."""
    own, places = _endings(entity.is_version)
    id = joined_parts(parts(xids.entity_id(entity.xid)))
    words = {f"{_ID}{id}{own}", f"{TYPE}{entity.type}{own}", f"{GROUP}{group_of(entity.xid)}{own}"}
    words |= {f"{FORMAT}{entity.format}{own}", KEY + xids.tree_key(entity.xid)}
    for place, _, text in entity.texts:
        is_cached = len(text) <= _CACHED_LENGTH and " " not in text
        words.update((_cached_words if is_cached else _words)(text, LETTERS[place], places[place], own))
    return words


def _words(text: str, letter: str, ending: str, own: str) -> list[str]:
    """The words of a text. letter, ending: of its place. own: the ending of words of the entity itself."""
    in_units = list(units(text))
    in_order = [part for unit in in_units for part in unit]
    words = [part + ending for part in in_order]
    words += [whole(unit) + ending for unit in in_units if len(unit) > 1]
    words += [_pair(letter, first, second[:_PAIR_BEGINNING]) + own for first, second in pairwise(in_order)]
    return words


#: Names of labels and fields are those of many entities; sentences are not.
_cached_words: Final = lru_cache(_CACHED_TEXTS)(_words)


def _endings(is_version: bool) -> tuple[str, list[str]]:
    """The ending of words of an entity itself, and of those at each place."""
    letters = [letter.lower() if is_version else letter for letter in (ENTITY, *LETTERS)]
    own, *places = (SEPARATOR + letter for letter in letters)
    return own, places


def place_of(word: str) -> str:
    """The letter of a word's place."""
    return word[-1].upper()


def is_of_version(word: str) -> bool:
    """Whether the entities that have a word are Versions."""
    return word[-1].islower()


def word_range(word: str, is_prefix: bool) -> WordRange:
    """The range of a word, or of all words that begin with it, at all places."""
    return (word, word + _LAST) if is_prefix else (word + SEPARATOR, word + SEPARATOR + _LAST)


def groups_range(place: str) -> WordRange:
    """The range of a Group, or of the Groups that a pattern may match; see `annals.domain.access.places`."""
    return word_range(GROUP + place.partition(WILDCARD)[0], is_pattern(place))


def group_of_word(word: str) -> str:
    """The Group of a word in the range of Groups."""
    return word.rpartition(SEPARATOR)[0][len(GROUP) :]


def keys_after(key: str, places: Collection[str] | None) -> WordRange:
    """The range of the tree keys after one of them.

    places: only the keys from the first to the last of these, see `annals.domain.access.places`; None for all keys.
    """
    after = key + SEPARATOR
    if places is None:
        return KEY + after, KEY + _LAST
    beginnings = [(xids.tree_key(place.partition(WILDCARD)[0]), is_pattern(place)) for place in places]
    low = min((beginning for beginning, _ in beginnings), default=_LAST)
    high = max((beginning + (_LAST if pattern else _AFTER_SUBTREE) for beginning, pattern in beginnings), default="")
    return KEY + max(after, low), KEY + high


def id_range(joined: str, is_prefix: bool) -> WordRange:
    """The range of an id, or of all that begin with it."""
    return word_range(_ID + joined, is_prefix)


def pair_ranges(term: Term, place: TextPlace) -> list[WordRange]:
    """The ranges of the pairs of a term at a place. A last part that may go on and is too short is in none."""
    is_too_short = term.is_prefix and len(term.parts[-1]) < _PAIR_BEGINNING
    known_parts = term.parts[:-1] if is_too_short else term.parts
    return [
        word_range(_pair(LETTERS[place], first, second[:_PAIR_BEGINNING]), False)
        for first, second in pairwise(known_parts)
    ]


@lru_cache(_CACHED_PAIRS)
def _pair(letter: str, first: str, beginning: str) -> str:
    """The word of a part and the beginning of the next one, without its ending."""
    return f"#{crc32(f'{letter}{first} {beginning}'.encode(errors='replace')) & _PAIR_HASHES:03x}"

"""The words of a text, as queries and the index compare them: without case, accents and punctuation.

A text consists of units: `orderTotal`, `order_total`, `2nd`. Other characters separate them: spaces, dots, slashes,
brackets. A unit consists of parts, such as `order` and `total`. A unit with several parts can be found by its whole
(`ordertotal`) too.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

#: Characters of a part or whole beyond this number do not count.
MAX_WORD_LENGTH: Final = 100
#: Units for which the parts stay known: schemas of one registry share most of their words.
_CACHED_UNITS: Final = 1 << 16
#: What cannot be in a unit, for ASCII; what else cannot be in one separates parts within it.
_UNIT: Final = re.compile(r"[^\s!\"#$%&'()*+,./:;<=>?@\[\\\]^`{|}~]+")
#: A part, for ASCII: several capitals, the last of which does not begin a word, or what begins with at most one.
_ASCII_PART: Final = re.compile(r"[A-Z]+(?![a-z])[a-z0-9]*|[A-Z]?[a-z0-9]+")

#: Deletes the ASCII characters that no part has.
_NO_SEPARATORS: Final = {code: None for code in range(128) if not chr(code).isalnum()}

#: A unit as its parts.
Parts = tuple[str, ...]


def units(text: str) -> Iterator[Parts]:
    """The parts of each unit of a text, in order."""
    return filter(None, map(unit_parts, _UNIT.findall(text)))


def located_units(text: str) -> Iterator[tuple[int, int, Parts]]:
    """The parts of each unit of a text, with where it begins and ends."""
    for match in _UNIT.finditer(text):
        if found := unit_parts(match[0]):
            yield match.start(), match.end(), found


def parts(text: str) -> list[str]:
    """The parts of all units of a text, in order."""
    return [part for unit in units(text) for part in unit]


def may_contain(text: str, joined: str) -> bool:
    """Whether a text may have a unit, or parts one behind the other, that are this as one word.

    It costs a tenth of finding the units of a text, and says of most texts without them that they have none.
    """
    return not text.isascii() or joined in text.lower().translate(_NO_SEPARATORS)


def whole(unit: Parts) -> str:
    """A unit as one word."""
    return "".join(unit)[:MAX_WORD_LENGTH]


@lru_cache(maxsize=_CACHED_UNITS)
def unit_parts(unit: str) -> Parts:
    """The parts of a unit: runs of letters and digits, which also end before a capital that begins a word."""
    if unit.isascii():
        return tuple(part.lower()[:MAX_WORD_LENGTH] for part in _ASCII_PART.findall(unit))
    return unicode_parts(unit)


def unicode_parts(unit: str) -> Parts:
    """`unit_parts` for all characters."""
    plain = "".join(each for each in unicodedata.normalize("NFKD", unit) if unicodedata.category(each) != "Mn")
    return tuple(
        part.casefold()[:MAX_WORD_LENGTH] for run in _runs(plain) for part in _split_at_capitals(run) if part.casefold()
    )


def _runs(unit: str) -> Iterator[str]:
    start = None
    for place, character in enumerate(f"{unit} "):
        # Signs of vowels, in scripts that have them, are neither letters nor digits.
        belongs = character.isalnum() or unicodedata.category(character) == "Mc"
        if belongs and start is None:
            start = place
        elif not belongs and start is not None:
            yield unit[start:place]
            start = None


def _split_at_capitals(run: str) -> Iterator[str]:
    """`orderTotal` in two, and `HTTPServer` too."""
    start = 0
    for place in range(1, len(run)):
        if run[place].isupper() and (not run[place - 1].isupper() or run[place + 1 : place + 2].islower()):
            yield run[start:place]
            start = place
    yield run[start:]

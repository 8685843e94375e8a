"""LIKE patterns, matched in time linear in the text.

Spec: cesql 1.0.0, section 3.4.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

#: A wildcard or a literal character; a backslash escapes wildcards only.
_PIECE: Final = re.compile(r"\\([%_])|(.)", re.DOTALL)
#: The representation of `_` in a segment.
_ANY: Final = None

#: Consecutive characters; None matches any one.
PatternSegment = tuple[str | None, ...]


class LikePattern(NamedTuple):
    """The segments between the `%` of a pattern; one segment where there is none."""

    segments: tuple[PatternSegment, ...]

    @property
    def prefix(self) -> str:
        """The literal text at the start of every match."""
        return _literal(self.segments[0])

    @property
    def has_underscores(self) -> bool:
        """Whether the pattern contains `_`."""
        return any(_ANY in segment for segment in self.segments)

    @property
    def is_exact(self) -> bool:
        """Whether only one text matches, which is `prefix`."""
        return len(self.segments) == 1 and _ANY not in self.segments[0]


def parse_pattern(text: str) -> LikePattern:
    """The pattern of a string literal."""
    segments: list[list[str | None]] = [[]]
    for escaped, character in _PIECE.findall(text):
        if character == "%":
            segments.append([])
        else:
            segments[-1].append(_ANY if character == "_" else character or escaped)
    return LikePattern(tuple(map(tuple, segments)))


def pattern_matcher(pattern: LikePattern) -> Callable[[str], bool]:
    """A function that decides whether a whole text matches.

    Each segment is matched at its first occurrence, which leaves the most text for later ones. So it never backtracks.
    """
    if pattern.is_exact:
        return pattern.prefix.__eq__
    if pattern.has_underscores:
        return _with_wild_characters(pattern)
    first, *others = map(_literal, pattern.segments)
    between, last = [each for each in others[:-1] if each], others[-1]
    shortest = len(first) + len(last)

    def matches(text: str) -> bool:
        if len(text) < shortest or not text.startswith(first) or not text.endswith(last):
            return False
        at, end = len(first), len(text) - len(last)
        for piece in between:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
        return True

    return matches


def _with_wild_characters(pattern: LikePattern) -> Callable[[str], bool]:
    first, *others = pattern.segments
    if not others:
        return lambda text: len(text) == len(first) and _matches_at(first, text, 0)
    *between, last = others
    searches = [_search(segment) for segment in between if segment]
    shortest = len(first) + len(last)

    def matches(text: str) -> bool:
        end = len(text) - len(last)
        if len(text) < shortest or not _matches_at(first, text, 0) or not _matches_at(last, text, end):
            return False
        at = len(first)
        for search in searches:
            at = search(text, at, end)
            if at < 0:
                return False
        return True

    return matches


def _matches_at(segment: PatternSegment, text: str, at: int) -> bool:
    found = text[at : at + len(segment)]
    return all(wanted is _ANY or wanted == each for wanted, each in zip(segment, found, strict=True))


def _search(segment: PatternSegment) -> Callable[[str, int, int], int]:
    """A function that returns the end of the first occurrence of a segment between two positions; -1 where it has none.

    Bit n of the state means that the last n + 1 characters match the start of the segment, so it reads the text once.
    """
    anything = sum(1 << bit for bit, wanted in enumerate(segment) if wanted is _ANY)
    masks: dict[str, int] = {}
    for bit, wanted in enumerate(segment):
        if wanted is not None:
            masks[wanted] = masks.get(wanted, anything) | 1 << bit
    complete = 1 << len(segment) - 1

    def search(text: str, start: int, end: int) -> int:
        state = 0
        for at in range(start, end):
            state = (state << 1 | 1) & masks.get(text[at], anything)
            if state & complete:
                return at + 1
        return -1

    return search


def _literal(segment: PatternSegment) -> str:
    """The characters before the first `_`."""
    return "".join(segment[: segment.index(_ANY)] if _ANY in segment else segment)  # type: ignore[arg-type]

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
_ANY_CHARACTER: Final = None

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
        return any(_ANY_CHARACTER in segment for segment in self.segments)

    @property
    def is_exact(self) -> bool:
        """Whether only one text matches, which is `prefix`."""
        return len(self.segments) == 1 and _ANY_CHARACTER not in self.segments[0]


def parse_pattern(text: str) -> LikePattern:
    """The pattern of a string literal."""
    segments: list[list[str | None]] = [[]]
    for escaped, character in _PIECE.findall(text):
        if character == "%":
            segments.append([])
        else:
            segments[-1].append(_ANY_CHARACTER if character == "_" else character or escaped)
    return LikePattern(tuple(map(tuple, segments)))


def pattern_matcher(pattern: LikePattern) -> Callable[[str], bool]:
    """A function that decides whether a whole text matches.

    Each segment is matched at its first occurrence, which leaves the most text for later ones. So it never backtracks.
    """
    if pattern.is_exact:
        return pattern.prefix.__eq__
    if pattern.has_underscores:
        return _with_wild_characters(pattern)
    first_segment, *other_segments = map(_literal, pattern.segments)
    middle_segments, last_segment = [segment for segment in other_segments[:-1] if segment], other_segments[-1]
    shortest = len(first_segment) + len(last_segment)

    def matches(text: str) -> bool:
        if len(text) < shortest or not text.startswith(first_segment) or not text.endswith(last_segment):
            return False
        index, end = len(first_segment), len(text) - len(last_segment)
        for segment_text in middle_segments:
            index = text.find(segment_text, index, end)
            if index < 0:
                return False
            index += len(segment_text)
        return True

    return matches


def _with_wild_characters(pattern: LikePattern) -> Callable[[str], bool]:
    first_segment, *other_segments = pattern.segments
    if not other_segments:
        return lambda text: len(text) == len(first_segment) and _matches_at(first_segment, text, 0)
    *middle_segments, last_segment = other_segments
    searches = [_searcher(segment) for segment in middle_segments if segment]
    shortest = len(first_segment) + len(last_segment)

    def matches(text: str) -> bool:
        end = len(text) - len(last_segment)
        if len(text) < shortest or not _matches_at(first_segment, text, 0) or not _matches_at(last_segment, text, end):
            return False
        index = len(first_segment)
        for search in searches:
            index = search(text, index, end)
            if index < 0:
                return False
        return True

    return matches


def _matches_at(segment: PatternSegment, text: str, index: int) -> bool:
    part = text[index : index + len(segment)]
    return all(
        expected is _ANY_CHARACTER or expected == character for expected, character in zip(segment, part, strict=True)
    )


def _searcher(segment: PatternSegment) -> Callable[[str, int, int], int]:
    """A function that returns the end of the first occurrence of a segment between two positions; -1 where it has none.

    Bit n of the state means that the last n + 1 characters match the start of the segment, so it reads the text once.
    """
    any_mask = sum(1 << bit for bit, expected in enumerate(segment) if expected is _ANY_CHARACTER)
    masks: dict[str, int] = {}
    for bit, expected in enumerate(segment):
        if expected is not None:
            masks[expected] = masks.get(expected, any_mask) | 1 << bit
    complete_mask = 1 << len(segment) - 1

    def search(text: str, start: int, end: int) -> int:
        matched_mask = 0
        for index in range(start, end):
            matched_mask = (matched_mask << 1 | 1) & masks.get(text[index], any_mask)
            if matched_mask & complete_mask:
                return index + 1
        return -1

    return search


def _literal(segment: PatternSegment) -> str:
    """The characters before the first `_`."""
    return "".join(segment[: segment.index(_ANY_CHARACTER)] if _ANY_CHARACTER in segment else segment)  # type: ignore[arg-type]

"""Compares two texts line by line, in time that does not explode with their size."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

#: Parts without a line that both sides have once are compared by difflib, up to this product of their lengths.
MAX_PRODUCT: Final = 10_000


class LineRun(NamedTuple):
    """Some lines of the left text, and what they are in the right text. is_equal: they are the same lines."""

    left: range
    right: range
    is_equal: bool


def line_runs(left: Sequence[str], right: Sequence[str]) -> list[LineRun]:
    """The texts as runs, which alternate between equal and different ones.

    Lines that occur once on each side are the anchors, as in a patience diff, because they say most about what belongs
    together. Cost: O(n log n), and MAX_PRODUCT for each part without anchors.
    """
    runs: list[LineRun] = []
    position = 0, 0
    for start_left, start_right, count in _joined(_matches(left, right)):
        if (start_left, start_right) != position:
            runs.append(LineRun(range(position[0], start_left), range(position[1], start_right), is_equal=False))
        position = start_left + count, start_right + count
        runs.append(LineRun(range(start_left, position[0]), range(start_right, position[1]), is_equal=True))
    if position != (len(left), len(right)):
        runs.append(LineRun(range(position[0], len(left)), range(position[1], len(right)), is_equal=False))
    return runs


#: The first line of equal lines on either side, and their number.
_Match = tuple[int, int, int]


def _joined(matches: Iterator[_Match]) -> Iterator[_Match]:
    """The matches, with those that follow each other joined."""
    left, right, count = 0, 0, 0
    for next_left, next_right, next_count in matches:
        if (next_left, next_right) == (left + count, right + count):
            count += next_count
            continue
        if count:
            yield left, right, count
        left, right, count = next_left, next_right, next_count
    if count:
        yield left, right, count


def _matches(left: Sequence[str], right: Sequence[str]) -> Iterator[_Match]:
    """The equal lines, in order. Works without recursion: parts wait on a stack, the first one on top."""
    waiting: list[tuple[int, int, int, int] | _Match] = [(0, len(left), 0, len(right))]
    while waiting:
        part = waiting.pop()
        if len(part) == 3:
            yield part
            continue
        low, high, right_low, right_high = part
        start = _equal_count(left, right, range(low, high), range(right_low, right_high))
        if start:
            yield low, right_low, start
        low, right_low = low + start, right_low + start
        end = _equal_count(left, right, range(high - 1, low - 1, -1), range(right_high - 1, right_low - 1, -1))
        high, right_high = high - end, right_high - end
        if end:
            waiting.append((high, right_high, end))
        if low < high and right_low < right_high:
            waiting += reversed(list(_split(left, right, (low, high, right_low, right_high))))


def _split(
    left: Sequence[str], right: Sequence[str], part: tuple[int, int, int, int]
) -> Iterator[tuple[int, int, int, int] | _Match]:
    """A part that begins and ends with different lines, as matches and the parts between them."""
    low, high, right_low, right_high = part
    anchors = _anchors(left, right, part)
    if not anchors:
        if (high - low) * (right_high - right_low) <= MAX_PRODUCT:
            matcher = SequenceMatcher(None, left[low:high], right[right_low:right_high], autojunk=False)
            yield from ((low + one, right_low + two, size) for one, two, size in matcher.get_matching_blocks() if size)
        return
    for anchor_left, anchor_right in anchors:
        yield low, anchor_left, right_low, anchor_right
        yield anchor_left, anchor_right, 1
        low, right_low = anchor_left + 1, anchor_right + 1
    yield low, high, right_low, right_high


def _anchors(left: Sequence[str], right: Sequence[str], part: tuple[int, int, int, int]) -> list[tuple[int, int]]:
    """The longest list of lines that occur once on each side of a part and are in the same order there."""
    low, high, right_low, right_high = part
    counts, right_counts = Counter(left[low:high]), Counter(right[right_low:right_high])
    places = {right[index]: index for index in range(right_low, right_high) if right_counts[right[index]] == 1}
    pairs = [
        (index, places[left[index]]) for index in range(low, high) if counts[left[index]] == 1 and left[index] in places
    ]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of some pairs, in order of the first numbers, in which the second numbers increase."""
    tails: list[int] = []
    tail_pairs: list[int] = []
    previous: list[int] = []
    for index, (_, value) in enumerate(pairs):
        length = bisect_left(tails, value)
        previous.append(tail_pairs[length - 1] if length else -1)
        tails[length : length + 1] = [value]
        tail_pairs[length : length + 1] = [index]
    found = []
    index = tail_pairs[-1] if tail_pairs else -1
    while index >= 0:
        found.append(pairs[index])
        index = previous[index]
    return found[::-1]


def _equal_count(left: Sequence[str], right: Sequence[str], lines: range, right_lines: range) -> int:
    """How many lines are equal from the beginning of two ranges."""
    count = 0
    for index, other in zip(lines, right_lines, strict=False):
        if left[index] != right[other]:
            break
        count += 1
    return count

"""Sets of integers, written as ranges such as `1-41,44`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple


class NumberRanges(NamedTuple):
    """A set of integers from 1 on; its size grows with its gaps only. ranges: ascending, (first, last) of each."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> NumberRanges:
        """The set that a text describes, such as `1-41,44`."""
        bounds = (part.partition("-") for part in text.split(",") if part)
        return cls(tuple((int(first), int(last or first)) for first, _, last in bounds))

    @property
    def text(self) -> str:
        """The set as text; empty for the empty set."""
        return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in self.ranges)

    @property
    def highest(self) -> int:
        """The highest number; 0 for the empty set."""
        return self.ranges[-1][1] if self.ranges else 0

    def with_numbers(self, numbers: Iterable[int]) -> NumberRanges:
        """The set with further numbers."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted([*self.ranges, *((number, number) for number in numbers)]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = merged[-1][0], max(merged[-1][1], last)
            else:
                merged.append((first, last))
        return NumberRanges(tuple(merged))

    def without_numbers(self, numbers: Iterable[int]) -> NumberRanges:
        """The set without the given numbers."""
        remaining = list(self.ranges)
        for number in numbers:
            index = bisect_right(remaining, (number, _INFINITY)) - 1
            if index >= 0 and remaining[index][1] >= number:
                first, last = remaining[index]
                remaining[index : index + 1] = [
                    bounds for bounds in ((first, number - 1), (number + 1, last)) if bounds[0] <= bounds[1]
                ]
        return NumberRanges(tuple(remaining))

    def contains(self, number: int) -> bool:
        """Whether a number is in the set."""
        index = bisect_right(self.ranges, (number, _INFINITY)) - 1
        return index >= 0 and self.ranges[index][1] >= number


#: Greater than the last number of any range.
_INFINITY: Final = float("inf")

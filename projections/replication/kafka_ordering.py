"""The order of a topic restored from the numbers of its records, and how far each of its partitions is done with.

No partition has a record for the first time behind one of a higher number (`projections.kafka.producer`). So what
comes next cannot be in a partition that was seen to be further, and when all are, it is in none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class RecordOrder(Generic[T]):
    """Items by their numbers, each once. number: of the last that was given. waiting: bytes of those that are early."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.waiting = 0
        self._early: dict[int, tuple[T, int]] = {}
        self._furthest: dict[int, int] = {}

    def add(self, partition: int, number: int, item: T, size: int) -> None:
        """Takes an item in, unless it was there already."""
        self._furthest[partition] = max(number, self._furthest.get(partition, 0))
        if number > self.number and number not in self._early:
            self._early[number] = item, size
            self.waiting += size

    def due(self) -> Iterator[T]:
        """Those that come next, as far as there is no gap."""
        while (found := self._early.pop(self.number + 1, None)) is not None:
            self.number += 1
            self.waiting -= found[1]
            yield found[0]

    def ahead(self) -> set[int]:
        """Partitions that cannot hold what comes next."""
        return {partition for partition, number in self._furthest.items() if number > self.number}


class RecordMark(NamedTuple):
    """A record by which its topic is recognised. time: milliseconds since 1970."""

    offset: int
    number: int
    time: int


class PartitionMarks:
    """The last record of each partition up to which all is taken in."""

    def __init__(self, given: Mapping[str, Iterable[int]]) -> None:
        """given: as `told` has it."""
        self._done = {int(partition): RecordMark(*mark) for partition, mark in given.items()}
        self._open: dict[int, deque[RecordMark]] = {}

    def of(self, partition: int) -> RecordMark | None:
        """The last one of a partition; None where nothing of it is taken in."""
        return self._done.get(partition)

    def add(self, partition: int, mark: RecordMark) -> None:
        """Takes in the next record of a partition."""
        self._open.setdefault(partition, deque()).append(mark)

    def settle(self, number: int) -> None:
        """All records up to a number are taken in now."""
        for partition, marks in self._open.items():
            while marks and marks[0].number <= number:
                self._done[partition] = marks.popleft()

    def told(self) -> dict[str, list[int]]:
        """All of them as JSON, by partition."""
        return {str(partition): list(mark) for partition, mark in sorted(self._done.items())}

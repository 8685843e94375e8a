"""Restores the order of a topic from the numbers of its records, and tracks the progress of each partition.

A partition never has a record for the first time after a record with a higher number
(`annals.projections.kafka.producer`). So the next record cannot be in a partition where a higher number was seen. If
that is true of all partitions, the record is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class RecordOrder(Generic[T]):
    """Items in the order of their numbers, each once.

    last_number: of the last item that was returned.
    waiting_bytes: bytes of items that arrived early.
    """

    def __init__(self, number: int) -> None:
        self.last_number = number
        self.waiting_bytes = 0
        self._early_items: dict[int, tuple[T, int]] = {}
        self._furthest: dict[int, int] = {}

    def add(self, partition: int, number: int, item: T, size: int) -> None:
        """Adds an item, unless it was added before."""
        self._furthest[partition] = max(number, self._furthest.get(partition, 0))
        if number > self.last_number and number not in self._early_items:
            self._early_items[number] = item, size
            self.waiting_bytes += size

    def take_next(self) -> Iterator[T]:
        """The next items, up to the first gap."""
        while (next_item := self._early_items.pop(self.last_number + 1, None)) is not None:
            self.last_number += 1
            self.waiting_bytes -= next_item[1]
            yield next_item[0]

    def partitions_ahead(self) -> set[int]:
        """Partitions that cannot hold the next item."""
        return {partition for partition, number in self._furthest.items() if number > self.last_number}


class RecordMark(NamedTuple):
    """A record that identifies its topic. time: milliseconds since 1970."""

    offset: int
    number: int
    time: int


class PartitionMarks:
    """The last record of each partition up to which all records are imported."""

    def __init__(self, stored_marks: Mapping[str, Iterable[int]]) -> None:
        """stored_marks: in the form that `to_json` returns."""
        self._imported = {int(partition): RecordMark(*mark) for partition, mark in stored_marks.items()}
        self._pending: dict[int, deque[RecordMark]] = {}

    def get(self, partition: int) -> RecordMark | None:
        """The mark of a partition; None if nothing of it is imported."""
        return self._imported.get(partition)

    def add(self, partition: int, mark: RecordMark) -> None:
        """Adds the next record of a partition."""
        self._pending.setdefault(partition, deque()).append(mark)

    def advance(self, number: int) -> None:
        """Records that all records up to a number are imported."""
        for partition, marks in self._pending.items():
            while marks and marks[0].number <= number:
                self._imported[partition] = marks.popleft()

    def to_json(self) -> dict[str, list[int]]:
        """The marks as JSON, by partition."""
        return {str(partition): list(mark) for partition, mark in sorted(self._imported.items())}

"""Records of several partitions in the order of their numbers, each once, and the position in each partition."""

from __future__ import annotations

from itertools import accumulate, chain
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.projections.replication.log.kafka_ordering import PartitionMarks, RecordMark, RecordOrder


@given(
    st.lists(st.integers(0, 2), max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))), st.randoms()
)
def test_every_record_once_in_order(keys: list[int], again: list[tuple[int, int]], random: Random) -> None:
    # EV-79: each partition is in order, some ranges are repeated, and any partition may be read first
    runs = [(0, len(keys)), *((min(start, len(keys)), min(end, len(keys))) for start, end in again)]
    reached = accumulate((end for _, end in runs), max)
    written = list(chain(*(range(min(start, before), end) for (start, end), before in zip(runs, reached, strict=True))))
    left = [[number + 1 for number in written if keys[number] == each] for each in range(3)]
    order: RecordOrder[int] = RecordOrder(0)
    marks, found, offsets = PartitionMarks({}), list[int](), [0, 0, 0]
    while remaining := [each for each in range(3) if offsets[each] < len(left[each])]:
        partition = random.choice(remaining)
        number = left[partition][offsets[partition]]
        marks.add(partition, RecordMark(offsets[partition], number, 0))
        order.add(partition, number, number, 1)
        offsets[partition] += 1
        found += order.take_next()
        marks.advance(order.last_number)
        # Each number that was not taken yet occurs in its partition after the mark.
        for each, numbers in enumerate(left):
            known = marks.get(each)
            behind = numbers[known.offset + 1 if known else 0 :]
            assert {number for number in numbers if number > order.last_number} <= set(behind)
            assert order.last_number + 1 not in numbers[offsets[each] :] or each not in order.partitions_ahead()
    assert found == list(range(1, len(keys) + 1))
    assert order.waiting_bytes == 0
    assert PartitionMarks(marks.to_json()).to_json() == marks.to_json()


@pytest.mark.parametrize(
    ("read", "ahead"),
    [
        ([], set()),
        ([(0, 1)], set()),
        ([(0, 1), (1, 3)], {1}),
        ([(0, 1), (1, 3), (0, 4)], {0, 1}),
        ([(0, 1), (1, 3), (0, 4), (1, 2)], set()),
    ],
)
def test_partitions_that_cannot_hold_what_comes_next(read: list[tuple[int, int]], ahead: set[int]) -> None:
    order: RecordOrder[int] = RecordOrder(0)
    for partition, number in read:
        order.add(partition, number, number, 1)
    list(order.take_next())
    assert order.partitions_ahead() == ahead

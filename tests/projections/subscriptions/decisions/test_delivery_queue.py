"""Lanes: order by key, cursors, and what has to be stored of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from annals.projections.subscriptions.decisions.delivery_queue import (
    MAX_OPEN_EVENTS,
    MAX_READY_KEYS,
    MAX_RETRYING_KEYS,
    DeliveryQueue,
    LogTail,
    QueuedEvent,
)
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.sequence import last_sequence, sequence_of
from tests.support.examples import examples


def message(position: int) -> EventMessage:
    whole: Any = None
    return EventMessage(sequence_of(position, 0), "xregistry", whole, {}, "")


def test_order_and_cursor() -> None:
    # SUB-802, 811: keys overtake each other; the cursor stays below what is pending
    lane = DeliveryQueue(0)
    for position, key in enumerate("aabc", 1):
        lane.offer(message(position), key, 1)
    lane.skip_to(9)
    [first], [second], [third] = lane.take_events(1), lane.take_events(1), lane.take_events(1)
    assert [each.key for each in (first, second, third)] == ["a", "b", "c"]
    assert not lane.is_ready
    lane.complete(second)
    assert lane.cursor == 0
    lane.schedule_retry(first, 50.0)
    lane.complete(third)
    assert not lane.is_ready and lane.release_due(49.0) == 50.0
    lane.release_due(50.0)
    assert lane.take_events(1) == [first]
    lane.complete(first)
    assert lane.cursor == 1
    [fourth] = lane.take_events(1)
    lane.complete(fourth)
    assert lane.cursor == 9


def test_a_batch_has_several_of_a_key_in_order() -> None:
    # SUB-706, 811
    lane = DeliveryQueue(0)
    for position, key in enumerate("abacab", 1):
        lane.offer(message(position), key, 1)
    batch = lane.take_events(4)
    assert [(each.sequence // 100, each.key) for each in batch] == [(1, "a"), (2, "b"), (3, "a"), (4, "c")]
    assert lane.take_events(4) == []  # the rest is behind what is under way
    for each in batch:
        lane.complete(each)
    assert [each.key for each in lane.take_events(4)] == ["a", "b"]


def test_more_than_a_thousand_waiting_keys_stop_the_rest() -> None:
    # SUB-812: retries go on, others wait until there are fewer
    lane = DeliveryQueue(0)
    for position in range(1, MAX_RETRYING_KEYS + 10):
        lane.offer(message(position), f"k{position}", 1)
    taken = lane.take_events(MAX_RETRYING_KEYS + 1)
    for each in taken:
        lane.schedule_retry(each, 10.0 if each.sequence == 100 else 20.0)
    assert not lane.is_ready and not lane.has_room()
    lane.release_due(10.0)
    assert lane.take_events(5)[0] is taken[0]
    assert lane.is_ready


def test_retries_go_on_where_new_events_wait() -> None:
    # SUB-812: beyond a thousand waiting keys only what was attempted before is handed out, whatever it waited for
    lane = DeliveryQueue(0)
    for position in range(1, MAX_RETRYING_KEYS + 10):
        lane.offer(message(position), f"k{position}", 1)
    [put_off, *taken] = lane.take_events(MAX_RETRYING_KEYS + 4)
    put_off.first_attempt = 5.0
    for each in taken:
        lane.schedule_retry(each, 10.0 if each is taken[1] else 20.0)
    assert not lane.is_ready
    lane.put_back(put_off)
    assert lane.is_ready and lane.take_events(5) == [put_off]
    lane.release_due(10.0)
    assert lane.retrying > MAX_RETRYING_KEYS and lane.take_events(5) == [taken[1]]
    assert not lane.is_ready and lane.take_events(5) == []


def test_what_is_attempted_again_comes_before_what_happened_later() -> None:
    # SUB-803, 811: in the order of the log, whether it is a retry or new
    lane = DeliveryQueue(0)
    for position, key in enumerate("abcd", 1):
        lane.offer(message(position), key, 1)
    [first], [second] = lane.take_events(1), lane.take_events(1)
    lane.schedule_retry(second, 9.0)
    lane.schedule_retry(first, 9.0)
    [third] = lane.take_events(1)
    lane.complete(third)
    lane.release_due(9.0)
    assert [each.key for each in lane.take_events(4)] == ["a", "b", "d"]


def test_reading_stops_and_goes_on() -> None:
    # A lane that is full wants more when half of it is gone; what waits behind a retry is no reason to stop at once
    lane = DeliveryQueue(0)
    for position in range(1, MAX_READY_KEYS + 1):
        assert lane.has_room()
        lane.offer(message(position), f"k{position}", 1)
    assert not lane.has_room()
    for _ in range(MAX_READY_KEYS // 2):
        lane.complete(lane.take_events(1)[0])
    assert not lane.has_room()
    lane.complete(lane.take_events(1)[0])
    assert lane.has_room()
    behind = DeliveryQueue(0)
    hot = DeliveryQueue(0)
    for position in range(1, MAX_READY_KEYS + 500):
        behind.offer(message(position), "k", 1)
        if position == 1:
            behind.schedule_retry(behind.take_events(1)[0], 99.0)
    assert behind.has_room()
    for position in range(1, MAX_OPEN_EVENTS):
        hot.offer(message(position), "hot", 1)
    assert hot.has_room()  # SUB-811: for other subjects
    hot.offer(message(MAX_OPEN_EVENTS), "hot", 1)
    assert not hot.has_room()


def test_rewinding_keeps_what_was_handed_out() -> None:
    # SUB-804
    lane = DeliveryQueue(0)
    for position, key in enumerate("abab", 1):
        lane.offer(message(position), key, 1)
    lane.skip_to(9)
    [first] = lane.take_events(1)
    lane.schedule_retry(first, 9.0)
    [second] = lane.take_events(1)
    lane.rewind()
    assert (len(lane), lane.read_up_to, lane.cursor) == (2, second.sequence, 0)
    lane.complete(second)
    lane.release_due(9.0)
    lane.complete(lane.take_events(1)[0])
    assert len(lane) == 0 and not lane.is_ready


def test_a_shared_place() -> None:
    # What all those share who are at the end moves their cursors, until they part
    tail, lane = LogTail(last_sequence(4)), DeliveryQueue(4)
    lane.join_tail(tail)
    tail.sequence = last_sequence(7)
    assert lane.cursor == 7
    lane.leave_tail()
    tail.sequence = last_sequence(9)
    assert lane.cursor == 7


ACTS = st.lists(
    st.tuples(st.sampled_from(("offer", "take", "settle", "again", "back", "due", "crash")), st.integers(0, 4))
)


@settings(max_examples=examples(300), deadline=None)
@given(ACTS)
def test_what_is_stored_is_enough(acts: list[tuple[str, int]]) -> None:
    # SUB-801, 802, 811: whatever is done, and however often all but the stored is lost: each event is settled once,
    # those of a key in order, and nothing is pending below the cursor
    lane, position, now, busy, settled = DeliveryQueue(0), 0, 0.0, list[QueuedEvent](), list[int]()
    keys: dict[int, str] = {}
    for act, number in acts:
        match act:
            case "offer":
                position += 1
                keys[sequence_of(position, 0)] = f"k{number}"
                lane.offer(message(position), f"k{number}", 1)
            case "take":
                busy += lane.take_events(1 + number)
            case "settle" | "again" | "back" if busy:
                entry = busy.pop(0)
                if act == "settle":
                    lane.complete(entry)
                    settled.append(entry.sequence)
                elif act == "again":
                    entry.first_attempt, entry.attempts = 1.0, entry.attempts + 1
                    lane.schedule_retry(entry, now + number + 1)
                else:
                    lane.put_back(entry)
                if act != "settle":  # what was taken together with it is one batch, which nobody sends in parts
                    for other in [other for other in busy if other.key == entry.key]:
                        busy.remove(other)
                        lane.put_back(other)
            case "due":
                now += number
                lane.release_due(now)
            case "crash":
                lane, busy = _restored(lane, position, keys), []
        assert all(sequence_of(below, 0) in settled for below in range(1, lane.cursor + 1))
        assert len({entry.key for entry in busy}) <= len(busy)
    for entry in busy:
        lane.put_back(entry)
    while lane.release_due(now + 100) or lane.is_ready:
        [entry] = lane.take_events(1)
        lane.complete(entry)
        settled.append(entry.sequence)
    assert sorted(settled) == sorted(keys)
    for key in set(keys.values()):
        own = [each for each in settled if keys[each] == key]
        assert own == sorted(own)


def _restored(lane: DeliveryQueue, position: int, keys: dict[int, str]) -> DeliveryQueue:
    """What another process makes of what is stored: it reads the log again behind that."""
    fresh = DeliveryQueue(lane.cursor, lane.reach)
    fresh.restore(list(lane.pending()))
    for number in range(1, position + 1):
        if sequence_of(number, 0) > fresh.read_up_to:
            fresh.offer(message(number), keys[sequence_of(number, 0)], 1)
    return fresh

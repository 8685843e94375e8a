"""Delivery queues: order by key, cursors, and what has to be stored."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from annals.projections.subscriptions.decisions.delivery_queue import (
    MAX_OPEN_EVENTS,
    MAX_READY_KEYS,
    MAX_RETRYING_KEYS,
    DeliveryQueue,
    LogTail,
    PendingEvent,
    QueuedEvent,
)
from annals.projections.subscriptions.sequence import last_sequence, sequence_of
from tests.projections.subscriptions.decisions.log_messages import message
from tests.support.examples import examples


def test_order_and_cursor() -> None:
    # SUB-802, 811: events of different keys overtake each other; the cursor stays before pending events
    queue = DeliveryQueue(0)
    for position, key in enumerate("aabc", 1):
        queue.offer(message(position), key, 1)
    queue.skip_to(9)
    [first], [second], [third] = queue.take_events(1), queue.take_events(1), queue.take_events(1)
    assert [each.key for each in (first, second, third)] == ["a", "b", "c"]
    assert not queue.is_ready
    queue.complete(second)
    assert queue.cursor == 0
    queue.schedule_retry(first, 50.0)
    queue.complete(third)
    assert not queue.is_ready and queue.release_due(49.0) == 50.0
    queue.release_due(50.0)
    assert queue.take_events(1) == [first]
    queue.complete(first)
    assert queue.cursor == 1
    [fourth] = queue.take_events(1)
    queue.complete(fourth)
    assert queue.cursor == 9


def test_a_batch_has_several_of_a_key_in_order() -> None:
    # SUB-706, 811
    queue = DeliveryQueue(0)
    for position, key in enumerate("abacab", 1):
        queue.offer(message(position), key, 1)
    batch = queue.take_events(4)
    assert [(each.sequence // 100, each.key) for each in batch] == [(1, "a"), (2, "b"), (3, "a"), (4, "c")]
    assert queue.take_events(4) == []  # the rest waits behind events that are handed out
    for each in batch:
        queue.complete(each)
    assert [each.key for each in queue.take_events(4)] == ["a", "b"]


def test_more_than_a_thousand_waiting_keys_stop_the_rest() -> None:
    # SUB-812: retries continue; other events wait until fewer keys wait
    queue = DeliveryQueue(0)
    for position in range(1, MAX_RETRYING_KEYS + 10):
        queue.offer(message(position), f"k{position}", 1)
    taken = queue.take_events(MAX_RETRYING_KEYS + 1)
    for each in taken:
        queue.schedule_retry(each, 10.0 if each.sequence == 100 else 20.0)
    assert not queue.is_ready and not queue.has_room()
    queue.release_due(10.0)
    assert queue.take_events(5)[0] is taken[0]
    assert queue.is_ready


def test_retries_go_on_where_new_events_wait() -> None:
    # SUB-812: with more than a thousand waiting keys, only events that were attempted before are handed out
    queue = DeliveryQueue(0)
    for position in range(1, MAX_RETRYING_KEYS + 10):
        queue.offer(message(position), f"k{position}", 1)
    [put_off, *taken] = queue.take_events(MAX_RETRYING_KEYS + 4)
    put_off.first_attempt = 5.0
    for each in taken:
        queue.schedule_retry(each, 10.0 if each is taken[1] else 20.0)
    assert not queue.is_ready
    queue.put_back(put_off)
    assert queue.is_ready and queue.take_events(5) == [put_off]
    queue.release_due(10.0)
    assert queue.is_retrying and queue.take_events(5) == [taken[1]]
    assert not queue.is_ready and queue.take_events(5) == []


def test_what_is_attempted_again_comes_before_what_happened_later() -> None:
    # SUB-803, 811: events are handed out in log order, whether they are new or retried
    queue = DeliveryQueue(0)
    for position, key in enumerate("abcd", 1):
        queue.offer(message(position), key, 1)
    [first], [second] = queue.take_events(1), queue.take_events(1)
    queue.schedule_retry(second, 9.0)
    queue.schedule_retry(first, 9.0)
    [third] = queue.take_events(1)
    queue.complete(third)
    queue.release_due(9.0)
    assert [each.key for each in queue.take_events(4)] == ["a", "b", "d"]


def test_reading_stops_and_goes_on() -> None:
    # A full queue has room again once more than half is gone; events behind a retry do not fill it at once
    queue = DeliveryQueue(0)
    for position in range(1, MAX_READY_KEYS + 1):
        assert queue.has_room()
        queue.offer(message(position), f"k{position}", 1)
    assert not queue.has_room()
    for _ in range(MAX_READY_KEYS // 2):
        queue.complete(queue.take_events(1)[0])
    assert not queue.has_room()
    queue.complete(queue.take_events(1)[0])
    assert queue.has_room()
    behind = DeliveryQueue(0)
    hot = DeliveryQueue(0)
    for position in range(1, MAX_READY_KEYS + 500):
        behind.offer(message(position), "k", 1)
        if position == 1:
            behind.schedule_retry(behind.take_events(1)[0], 99.0)
    assert behind.has_room()
    for position in range(1, MAX_OPEN_EVENTS):
        hot.offer(message(position), "hot", 1)
    assert hot.has_room()  # SUB-811: there is room for other subjects
    hot.offer(message(MAX_OPEN_EVENTS), "hot", 1)
    assert not hot.has_room()


def test_rewinding_keeps_what_was_handed_out() -> None:
    # SUB-804
    queue = DeliveryQueue(0)
    for position, key in enumerate("abab", 1):
        queue.offer(message(position), key, 1)
    queue.skip_to(9)
    [first] = queue.take_events(1)
    queue.schedule_retry(first, 9.0)
    [second] = queue.take_events(1)
    queue.rewind()
    assert (len(queue), queue.read_up_to, queue.cursor) == (2, second.sequence, 0)
    queue.complete(second)
    queue.release_due(9.0)
    queue.complete(queue.take_events(1)[0])
    assert len(queue) == 0 and not queue.is_ready


def test_a_shared_place() -> None:
    # The read position that queues at the end of the log share moves their cursors, until they leave it
    tail, queue = LogTail(last_sequence(4)), DeliveryQueue(4)
    queue.join_tail(tail)
    tail.sequence = last_sequence(7)
    assert queue.cursor == 7
    queue.leave_tail()
    tail.sequence = last_sequence(9)
    assert queue.cursor == 7


ACTS = st.lists(
    st.tuples(st.sampled_from(("offer", "take", "settle", "again", "back", "due", "end", "crash")), st.integers(0, 4))
)


@settings(max_examples=examples(300), deadline=None)
@given(ACTS)
def test_what_is_stored_is_enough(acts: list[tuple[str, int]]) -> None:
    # SUB-801, 802, 811: after any operations, and crashes that lose everything but the stored state, each event is
    # settled once, those of a key in order, and no event is pending at or below the cursor. The events that are handed
    # out are the first open ones of their keys, and those of one key were handed out together.
    queue, position, now, busy, settled = DeliveryQueue(0), 0, 0.0, list[QueuedEvent](), list[int]()
    keys: dict[int, str] = {}
    stored: dict[int, PendingEvent] = {}
    for act, number in acts:
        match act:
            case "offer":
                position += 1
                keys[sequence_of(position, 0)] = f"k{number}"
                queue.offer(message(position), f"k{number}", 1)
            case "take":
                taken = queue.take_events(1 + number)
                assert not {entry.key for entry in taken} & {entry.key for entry in busy}
                busy += taken
            case "settle" | "again" | "back" if busy:
                entry = busy.pop(0)
                if act == "settle":
                    queue.complete(entry)
                    settled.append(entry.sequence)
                elif act == "again":
                    queue.begin_attempt(entry, 1.0)
                    queue.count_attempt(entry)
                    queue.schedule_retry(entry, now + number + 1)
                else:
                    queue.put_back(entry)
                if act != "settle":  # the other events of its key were in the same batch, so they return as well
                    for other in [other for other in busy if other.key == entry.key]:
                        busy.remove(other)
                        queue.put_back(other)
            case "due":
                now += number
                queue.release_due(now)
            case "end":
                queue.end_waits()
            case "crash":
                queue, busy = _restored(queue, stored, position, keys), []
        _store(queue, stored)
        assert {each: queue.stored_form(each) for each in keys} == {each: stored.get(each) for each in keys}
        assert queue.is_retrying or not any(event.attempts for event in stored.values())
        assert all(sequence_of(below, 0) in settled for below in range(1, queue.cursor + 1))
        for key in {entry.key for entry in busy}:
            own = [entry.sequence for entry in busy if entry.key == key]
            open_ones = [each for each in keys if keys[each] == key and each not in settled]
            assert own == open_ones[: len(own)]
    for entry in busy:
        queue.put_back(entry)
    while queue.release_due(now + 100) or queue.is_ready:
        [entry] = queue.take_events(1)
        queue.complete(entry)
        settled.append(entry.sequence)
    assert sorted(settled) == sorted(keys) and not queue.is_retrying
    for key in set(keys.values()):
        own = [each for each in settled if keys[each] == key]
        assert own == sorted(own)


def _store(queue: DeliveryQueue, stored: dict[int, PendingEvent]) -> None:
    for sequence in queue.take_changed():
        if (event := queue.stored_form(sequence)) is None:
            stored.pop(sequence, None)
        else:
            stored[sequence] = event


def _restored(
    queue: DeliveryQueue, stored: dict[int, PendingEvent], position: int, keys: dict[int, str]
) -> DeliveryQueue:
    """The queue in another process: the stored events, and those of the log after them."""
    fresh = DeliveryQueue(queue.cursor, queue.reach)
    fresh.restore(stored.values())
    for number in range(1, position + 1):
        if sequence_of(number, 0) > fresh.read_up_to:
            fresh.offer(message(number), keys[sequence_of(number, 0)], 1)
    return fresh

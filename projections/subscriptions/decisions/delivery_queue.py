"""The events of one range of the log that are on their way to one sink.

A queue accepts events in order, hands them out by key, and drops them as they are settled. It knows no sinks, and of
times it only compares two. Events of one key are handed out one after the other; events of different keys may overtake
each other. Spec: SUB-802, 804, 811, 812.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.sequence import MAX_MESSAGES_PER_POSITION, last_sequence, position_of

#: Keys waiting for a retry, above which no other event of the subscription is attempted (SUB-812).
MAX_RETRYING_KEYS: Final = 1000
#: Limits of a queue. MAX_OPEN_EVENTS: open events, held by reference. MAX_READY_KEYS: keys that are ready; about as
#: many events are in memory in full. The others, which wait behind events of their key, are read from the log again,
#: READ_AHEAD_EVENTS of a key at a time.
MAX_OPEN_EVENTS: Final = 10_000
MAX_READY_KEYS: Final = 1_000
READ_AHEAD_EVENTS: Final = 10

#: The queues of a subscription: new events, replayed events, and dead letters that are retried.
LIVE: Final = 0
REPLAY: Final = 1
DEAD_LETTERS: Final = 2
QUEUE_NUMBERS: Final = frozenset((LIVE, REPLAY, DEAD_LETTERS))

#: The key within which events stay in order.
OrderingKey = str
#: A sequence above every real one.
BEYOND_ALL_SEQUENCES: Final = 1 << 62


@dataclass(slots=True, eq=False)
class QueuedEvent:
    """An event in a queue.

    event: the message; None if it must be read from the log again.
    settings_position: position of the subscription settings that it matched; 0 if unknown.
    attempts: number of attempts that counted.
    first_attempt: time of the first attempt, whether it counted or not.
    next_attempt: earliest time of the next attempt.
    """

    sequence: int
    key: OrderingKey
    event: EventMessage | None = None
    settings_position: int = 0
    attempts: int = 0
    first_attempt: float | None = None
    next_attempt: float = 0.0


class PendingEvent(NamedTuple):
    """A queued event as it is stored, without its message."""

    sequence: int
    key: OrderingKey
    attempts: int
    first_attempt: float | None
    next_attempt: float


@dataclass(slots=True)
class LogTail:
    """How far the log was read, shared by all queues at its end.

    sequence: has the meaning of `DeliveryQueue.read_up_to`.
    """

    sequence: int = 0


@dataclass(slots=True)
class _KeyQueue:
    """The events of one key. busy_count: how many of them, counted from the first, are handed out."""

    entries: deque[QueuedEvent] = field(default_factory=deque)
    busy_count: int = 0


class DeliveryQueue:
    """The events after one log position, up to another.

    reach: the highest sequence that was handed out. Events beyond it are found again by reading the log, so only open
    events up to it have to be stored.
    end: the last position, None for no end.
    """

    def __init__(self, cursor: int, reach: int = 0, end: int | None = None) -> None:
        self.end = end
        self.reach = reach
        self._read_sequence = max(last_sequence(cursor), reach)
        self._tail: LogTail | None = None
        self._entries: OrderedDict[int, QueuedEvent] = OrderedDict()
        self._beyond_reach: deque[int] = deque()  # sequences of events that do not have to be stored yet
        self._changed: dict[int, None] = {}
        self._attempted_count = 0  # number of events with attempts that counted
        self._queues: dict[OrderingKey, _KeyQueue] = {}
        # A key that has events is in one of these three heaps, unless one of its events is handed out.
        self._new_heap: list[tuple[int, OrderingKey]] = []
        self._retry_heap: list[tuple[int, OrderingKey]] = []
        self._waiting_heap: list[tuple[float, int, OrderingKey]] = []
        self._retrying_keys: set[OrderingKey] = set()
        self._waiting_count = 0  # number of events whose keys wait for a retry
        self._is_full = False

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, sequence: int) -> bool:
        return sequence in self._entries

    @property
    def read_up_to(self) -> int:
        """The sequence up to which the log was read."""
        return self._read_sequence if self._tail is None else max(self._read_sequence, self._tail.sequence)

    @property
    def cursor(self) -> int:
        """The highest position at or below which no event is pending. O(1)."""
        first = next(iter(self._entries), None)
        return (self.read_up_to + 1 if first is None else first) // MAX_MESSAGES_PER_POSITION - 1

    @property
    def is_retrying(self) -> bool:
        """Whether an event waits for another attempt, or has one now."""
        return bool(self._retrying_keys or self._attempted_count)

    def take_changed(self) -> Collection[int]:
        """The sequences for which `stored_form` may have changed since the last call."""
        changed, self._changed = self._changed, {}
        return changed

    def stored_form(self, sequence: int) -> PendingEvent | None:
        """An event as it has to be stored; None if it does not have to be."""
        entry = self._entries.get(sequence)
        if entry is None or sequence > self.reach:
            return None
        return PendingEvent(sequence, entry.key, entry.attempts, entry.first_attempt, entry.next_attempt)

    @property
    def unsent(self) -> int:
        """Number of events that only wait for their turn."""
        return len(self._entries) - self._waiting_count

    @property
    def next_retry(self) -> float | None:
        """When the next wait for another attempt ends."""
        return self._waiting_heap[0][0] if self._waiting_heap else None

    # --- adding events -----------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether the last call of `has_room` found no room."""
        return self._is_full

    def has_room(self) -> bool:
        """Whether to read more of the log. A full queue has room again only once it is half empty."""
        fraction = 0.5 if self._is_full else 1.0
        # Limits keys, not events: events that wait behind others of their key must not delay other keys (SUB-811).
        ready_keys = len(self._new_heap) + len(self._retry_heap)
        self._is_full = (
            ready_keys >= MAX_READY_KEYS * fraction
            or len(self._entries) >= MAX_OPEN_EVENTS * fraction
            or len(self._retrying_keys) > MAX_RETRYING_KEYS
        )
        return not self._is_full

    @property
    def has_ended(self) -> bool:
        """Whether no work is left, now and later."""
        return self.end is not None and position_of(self.read_up_to + 1) > self.end and not self._entries

    def offer(self, event: EventMessage, key: OrderingKey, settings_position: int) -> None:
        """Adds the next event of the log that the subscription wants."""
        self._read_sequence = event.sequence
        kept_event = event if len(self._entries) < MAX_READY_KEYS or key not in self._queues else None
        self.add(QueuedEvent(event.sequence, key, kept_event, settings_position))

    def skip_to(self, position: int) -> None:
        """Records that the log up to a position holds no more wanted events."""
        self._read_sequence = max(self._read_sequence, last_sequence(position))

    def join_tail(self, tail: LogTail) -> None:
        """Shares the read position of the queues at the end of the log from now on."""
        self._tail = tail

    def leave_tail(self) -> None:
        """Leaves the shared read position and keeps its current value."""
        self._read_sequence, self._tail = self.read_up_to, None

    def add(self, entry: QueuedEvent) -> None:
        """Adds an event that is not stored and is later than all events in the queue, or a dead letter."""
        self._append(entry)
        if entry.sequence <= self.reach:
            self._changed[entry.sequence] = None

    def _append(self, entry: QueuedEvent) -> None:
        self._entries[entry.sequence] = entry
        self._attempted_count += entry.attempts > 0
        if entry.sequence > self.reach:
            self._beyond_reach.append(entry.sequence)
        queue = self._queues.setdefault(entry.key, _KeyQueue())
        queue.entries.append(entry)
        if entry.key in self._retrying_keys:
            self._waiting_count += 1
        if len(queue.entries) == 1:
            self._push_head(queue)

    def restore(self, pending: Collection[PendingEvent]) -> None:
        """Adds stored events."""
        for event in sorted(pending):
            self._append(
                QueuedEvent(event.sequence, event.key, None, 0, event.attempts, event.first_attempt, event.next_attempt)
            )

    def rewind(self) -> None:
        """Drops the events that were read and never handed out, so that they are read and matched again (SUB-804)."""
        start = last_sequence(self.cursor)
        while self._entries and next(reversed(self._entries)) > self.reach:
            entry = self._remove(next(reversed(self._entries)))
            queue = self._queues[entry.key]
            queue.entries.pop()  # the last event of all is also the last one of its key
            if entry.key in self._retrying_keys:
                self._waiting_count -= 1
            if not queue.entries:
                del self._queues[entry.key]
        self._beyond_reach.clear()
        self._read_sequence, self._tail = min(self.read_up_to, max(self.reach, start)), None
        self._new_heap = [item for item in self._new_heap if item[1] in self._queues]
        heapify(self._new_heap)

    # --- handing out events ------------------------------------------------------------------------------------------

    def release_due(self, now: float) -> float | None:
        """Makes the keys ready whose wait is over. Returns when the next wait ends."""
        while self._waiting_heap and self._waiting_heap[0][0] <= now:
            _, sequence, key = heappop(self._waiting_heap)
            self._retrying_keys.discard(key)
            self._waiting_count -= len(self._queues[key].entries)
            heappush(self._retry_heap, (sequence, key))
        return self.next_retry

    def end_waits(self) -> None:
        """Makes all events that wait for another attempt ready."""
        for entry in self._entries.values():
            if entry.next_attempt:
                entry.next_attempt = 0.0
                self._changed[entry.sequence] = None
        self.release_due(math.inf)

    @property
    def is_ready(self) -> bool:
        """Whether `take_events` would return an event."""
        return bool(self._retry_heap or (self._new_heap and len(self._retrying_keys) <= MAX_RETRYING_KEYS))

    def take_events(self, limit: int, blocked_keys: Collection[OrderingKey] = ()) -> list[QueuedEvent]:
        """The next events in order; several events of one key only if several events are requested.

        The caller passes each of them to `complete`, `schedule_retry` or `put_back`. blocked_keys: keys to skip.
        """
        entries: list[QueuedEvent] = []
        skipped_items: list[tuple[list[tuple[int, OrderingKey]], tuple[int, OrderingKey]]] = []
        following_heap: list[tuple[int, OrderingKey]] = []  # the next events of keys from which an event was taken
        while len(entries) < limit and (heap := self._lowest_heap(following_heap)) is not None:
            sequence, key = heappop(heap)
            if key in blocked_keys:
                skipped_items.append((heap, (sequence, key)))
                continue
            queue = self._queues[key]
            entries.append(queue.entries[queue.busy_count])
            queue.busy_count += 1
            if queue.busy_count < len(queue.entries):
                heappush(following_heap, (queue.entries[queue.busy_count].sequence, key))
        for heap, item in skipped_items:
            heappush(heap, item)
        if entries:
            self.reach = max(self.reach, entries[-1].sequence)
        while self._beyond_reach and self._beyond_reach[0] <= self.reach:
            self._changed[self._beyond_reach.popleft()] = None
        return entries

    def unread_events(self, key: OrderingKey) -> list[QueuedEvent]:
        """The next few events of a key that have to be read from the log again."""
        return [entry for entry in islice(self._queues[key].entries, READ_AHEAD_EVENTS) if entry.event is None]

    def begin_attempt(self, entry: QueuedEvent, now: float) -> None:
        """Records the time of the first attempt of an event that was handed out."""
        if entry.first_attempt is None:
            entry.first_attempt = now
            self._changed[entry.sequence] = None

    def count_attempt(self, entry: QueuedEvent) -> None:
        """Counts an attempt of an event that was handed out."""
        self._attempted_count += entry.attempts == 0
        entry.attempts += 1
        self._changed[entry.sequence] = None

    def complete(self, entry: QueuedEvent) -> None:
        """Removes an event that was delivered or never will be."""
        self._remove(entry.sequence)
        self._queues[entry.key].entries.remove(entry)  # it is one of the first
        self._free(entry.key)

    def discard(self, sequence: int) -> None:
        """Removes an event, unless it is handed out now."""
        entry = self._entries.get(sequence)
        if entry is None or self._queues[entry.key].busy_count or len(self._queues[entry.key].entries) > 1:
            return
        if entry.key in self._retrying_keys:
            self._retrying_keys.discard(entry.key)
            self._waiting_count -= 1
        self._remove(sequence)
        del self._queues[entry.key]
        # Heaps of a dead-letter queue are short, and the key is in only one of them.
        self._new_heap = sorted(item for item in self._new_heap if item[1] != entry.key)
        self._retry_heap = sorted(item for item in self._retry_heap if item[1] != entry.key)
        self._waiting_heap = sorted(item for item in self._waiting_heap if item[2] != entry.key)

    def schedule_retry(self, entry: QueuedEvent, retry_at: float) -> None:
        """Schedules another attempt of an event, not before a time."""
        entry.next_attempt = retry_at
        self._changed[entry.sequence] = None
        entry.event = None
        self._free(entry.key)

    def put_back(self, entry: QueuedEvent) -> None:
        """Returns an event to the queue because it was not attempted, or should be as soon as possible."""
        self._free(entry.key)

    def _remove(self, sequence: int) -> QueuedEvent:
        entry = self._entries.pop(sequence)
        self._attempted_count -= entry.attempts > 0
        self._changed[sequence] = None
        return entry

    def _free(self, key: OrderingKey) -> None:
        queue = self._queues[key]
        queue.busy_count -= 1
        if not queue.entries:
            del self._queues[key]
        elif not queue.busy_count:
            self._push_head(queue)

    def _push_head(self, queue: _KeyQueue) -> None:
        head = queue.entries[0]
        if head.next_attempt:
            heappush(self._waiting_heap, (head.next_attempt, head.sequence, head.key))
            self._retrying_keys.add(head.key)
            self._waiting_count += len(queue.entries)
        else:
            heappush(self._retry_heap if head.first_attempt is not None else self._new_heap, (head.sequence, head.key))

    def _lowest_heap(self, following_heap: list[tuple[int, OrderingKey]]) -> list[tuple[int, OrderingKey]] | None:
        """The heap with the lowest sequence that may be handed out."""
        new_heap = self._new_heap if len(self._retrying_keys) <= MAX_RETRYING_KEYS else []
        return min(
            (heap for heap in (self._retry_heap, new_heap, following_heap) if heap), key=_heap_head, default=None
        )


def _heap_head(heap: list[tuple[int, OrderingKey]]) -> tuple[int, OrderingKey]:
    return heap[0]

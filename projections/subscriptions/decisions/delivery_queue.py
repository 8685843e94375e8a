"""What of one stretch of the log is on its way to one sink: taken in in order, handed out by key, settled as it goes.

A lane knows neither sinks nor times beyond comparing them. Events of one key are handed out one after the other; keys
overtake each other. Spec: SUB-802, 804, 811, 812.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from projections.subscriptions.event_messages import EventMessage
from projections.subscriptions.sequence import MAX_MESSAGES_PER_POSITION as TOGETHER
from projections.subscriptions.sequence import last_sequence, position_of

#: Keys that wait for a retry, beyond which no other event of the subscription is attempted (SUB-812).
MAX_RETRYING_KEYS: Final = 1000
#: Events of a lane that are open at a time, by reference, and keys that wait for their turn. About so many events are
#: in memory as a whole; what else waits behind others of its key is read again, so many of a key at a time.
MAX_OPEN_EVENTS: Final = 10_000
MAX_READY_KEYS: Final = 1_000
READ_AHEAD_EVENTS: Final = 10

#: What events are kept in order by.
OrderingKey = str
#: Beyond every sequence.
BEYOND_ALL_SEQUENCES: Final = 1 << 62


@dataclass(slots=True, eq=False)
class QueuedEvent:
    """An event on its way.

    told: None where it has to be read from the log again. under: position of the subscription's settings that it was
    matched under, 0 where that is not known. attempts: that counted. first: when the first attempt was, whether it
    counted or not. next: the time before which there is no other one.
    """

    sequence: int
    key: OrderingKey
    told: EventMessage | None = None
    under: int = 0
    attempts: int = 0
    first: float | None = None
    next: float = 0.0


class PendingEvent(NamedTuple):
    """An entry as it is stored, without the event."""

    sequence: int
    key: OrderingKey
    attempts: int
    first: float | None
    next: float


@dataclass(slots=True)
class LogTail:
    """How far the log was read for all those who are at its end. sequence: as `DeliveryQueue.read`."""

    sequence: int = 0


@dataclass(slots=True)
class _KeyQueue:
    """The events of one key. busy: how many of them, from the first on, are handed out."""

    entries: deque[QueuedEvent] = field(default_factory=deque)
    busy: int = 0


class DeliveryQueue:
    """Events beyond a position, up to another.

    reach: the highest sequence that was handed out; what is beyond it would be found again by reading, so only what is
    open up to there has to be stored. end: the last position, None for no end.
    """

    def __init__(self, cursor: int, reach: int = 0, end: int | None = None) -> None:
        self.end = end
        self.reach = reach
        self._read = max(last_sequence(cursor), reach)
        self._tail: LogTail | None = None
        self._open: OrderedDict[int, QueuedEvent] = OrderedDict()
        self._queues: dict[OrderingKey, _KeyQueue] = {}
        # A key with events is in one of these, or events of it are handed out.
        self._fresh: list[tuple[int, OrderingKey]] = []
        self._again: list[tuple[int, OrderingKey]] = []
        self._waiting: list[tuple[float, int, OrderingKey]] = []
        self._retrying: set[OrderingKey] = set()
        self._behind = 0  # events of keys that wait
        self._full = False

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, sequence: int) -> bool:
        return sequence in self._open

    @property
    def read(self) -> int:
        """The sequence up to which the log has been looked at."""
        return self._read if self._tail is None else max(self._read, self._tail.sequence)

    @property
    def cursor(self) -> int:
        """The highest position below which, itself included, nothing is pending. O(1)."""
        first = next(iter(self._open), None)
        return (self.read + 1 if first is None else first) // TOGETHER - 1

    @property
    def retrying(self) -> int:
        """How many keys wait for another attempt."""
        return len(self._retrying)

    def pending(self) -> Iterator[PendingEvent]:
        """What has to be stored."""
        for entry in self._open.values():
            if entry.sequence > self.reach:
                return
            yield PendingEvent(entry.sequence, entry.key, entry.attempts, entry.first, entry.next)

    @property
    def unsent(self) -> int:
        """How many events only wait for their turn."""
        return len(self._open) - self._behind

    @property
    def next(self) -> float | None:
        """When the next wait for another attempt is over."""
        return self._waiting[0][0] if self._waiting else None

    # --- taking in ---------------------------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether there was no room when that was asked last."""
        return self._full

    def has_room(self) -> bool:
        """Whether more of the log is to be read; once full, not before half of it is gone."""
        share = 0.5 if self._full else 1.0
        # Keys, not events: what waits behind others of its key is no reason for other keys to wait (SUB-811).
        ready = len(self._fresh) + len(self._again)
        self._full = (
            ready >= MAX_READY_KEYS * share
            or len(self._open) >= MAX_OPEN_EVENTS * share
            or len(self._retrying) > MAX_RETRYING_KEYS
        )
        return not self._full

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing left to do, now and later."""
        return self.end is not None and position_of(self.read + 1) > self.end and not self._open

    def offer(self, told: EventMessage, key: OrderingKey, under: int) -> None:
        """Takes in the next event of the log that the subscription wants."""
        self._read = told.sequence
        whole = told if len(self._open) < MAX_READY_KEYS or key not in self._queues else None
        self.add(QueuedEvent(told.sequence, key, whole, under))

    def passed(self, position: int) -> None:
        """Says that nothing more is wanted of the log up to a position."""
        self._read = max(self._read, last_sequence(position))

    def join(self, tail: LogTail) -> None:
        """Has been read as far as all those who share a place, from now on."""
        self._tail = tail

    def part(self) -> None:
        """Stays where it is while others are read on."""
        self._read, self._tail = self.read, None

    def add(self, entry: QueuedEvent) -> None:
        """Takes in an event that is beyond those taken in already, or that was stored."""
        self._open[entry.sequence] = entry
        queue = self._queues.setdefault(entry.key, _KeyQueue())
        queue.entries.append(entry)
        if entry.key in self._retrying:
            self._behind += 1
        if len(queue.entries) == 1:
            self._line_up(queue)

    def restore(self, pending: Collection[PendingEvent]) -> None:
        """Takes in what was stored."""
        for each in sorted(pending):
            self.add(QueuedEvent(each.sequence, each.key, None, 0, each.attempts, each.first, each.next))

    def rewind(self) -> None:
        """Forgets what was read and never handed out: it is to be read, and matched, once more (SUB-804)."""
        start = last_sequence(self.cursor)
        while self._open and next(reversed(self._open)) > self.reach:
            _, entry = self._open.popitem()
            queue = self._queues[entry.key]
            queue.entries.pop()  # the last one of all is the last one of its key
            if entry.key in self._retrying:
                self._behind -= 1
            if not queue.entries:
                del self._queues[entry.key]
        self._read, self._tail = min(self.read, max(self.reach, start)), None
        self._fresh = [each for each in self._fresh if each[1] in self._queues]
        heapify(self._fresh)

    # --- handing out -------------------------------------------------------------------------------------------------

    def due(self, now: float) -> float | None:
        """Lines up the keys whose wait is over; gives the time at which the next one's is."""
        while self._waiting and self._waiting[0][0] <= now:
            _, sequence, key = heappop(self._waiting)
            self._retrying.discard(key)
            self._behind -= len(self._queues[key].entries)
            heappush(self._again, (sequence, key))
        return self.next

    @property
    def ready(self) -> bool:
        """Whether `take` would give something."""
        return bool(self._again or (self._fresh and len(self._retrying) <= MAX_RETRYING_KEYS))

    def take(self, most: int, held: Collection[OrderingKey] = ()) -> list[QueuedEvent]:
        """The next events in order, several of one key only where several are asked for.

        Each of them is to be given to `settle`, `again` or `back`. held: keys that are not to be touched now.
        """
        taken: list[QueuedEvent] = []
        put_off: list[tuple[list[tuple[int, OrderingKey]], tuple[int, OrderingKey]]] = []
        more: list[tuple[int, OrderingKey]] = []  # the next ones of keys that something was taken of
        while len(taken) < most and (heap := self._lowest(more)) is not None:
            sequence, key = heappop(heap)
            if key in held:
                put_off.append((heap, (sequence, key)))
                continue
            queue = self._queues[key]
            taken.append(queue.entries[queue.busy])
            queue.busy += 1
            if queue.busy < len(queue.entries):
                heappush(more, (queue.entries[queue.busy].sequence, key))
        for heap, each in put_off:
            heappush(heap, each)
        if taken:
            self.reach = max(self.reach, taken[-1].sequence)
        return taken

    def unread(self, key: OrderingKey) -> list[QueuedEvent]:
        """The next events of a key that have to be read again, some of them."""
        return [entry for entry in islice(self._queues[key].entries, READ_AHEAD_EVENTS) if entry.told is None]

    def settle(self, entry: QueuedEvent) -> None:
        """Says that an event has arrived, or never will."""
        del self._open[entry.sequence]
        self._queues[entry.key].entries.remove(entry)  # one of the first
        self._freed(entry.key)

    def discard(self, sequence: int) -> None:
        """Forgets an event that is not handed out now."""
        entry = self._open.get(sequence)
        if entry is None or self._queues[entry.key].busy or len(self._queues[entry.key].entries) > 1:
            return
        if entry.key in self._retrying:
            self._retrying.discard(entry.key)
            self._behind -= 1
        del self._open[sequence], self._queues[entry.key]
        # None of these is long where letters are, and a key is in one of them.
        self._fresh = sorted(each for each in self._fresh if each[1] != entry.key)
        self._again = sorted(each for each in self._again if each[1] != entry.key)
        self._waiting = sorted(each for each in self._waiting if each[2] != entry.key)

    def again(self, entry: QueuedEvent, at: float) -> None:
        """Says that an event is to be attempted again, not before a time."""
        entry.next = at
        entry.told = None
        self._freed(entry.key)

    def back(self, entry: QueuedEvent) -> None:
        """Says that an event was not attempted after all, or is to be at the next occasion."""
        self._freed(entry.key)

    def _freed(self, key: OrderingKey) -> None:
        queue = self._queues[key]
        queue.busy -= 1
        if not queue.entries:
            del self._queues[key]
        elif not queue.busy:
            self._line_up(queue)

    def _line_up(self, queue: _KeyQueue) -> None:
        head = queue.entries[0]
        if head.next:
            heappush(self._waiting, (head.next, head.sequence, head.key))
            self._retrying.add(head.key)
            self._behind += len(queue.entries)
        else:
            heappush(self._again if head.first is not None else self._fresh, (head.sequence, head.key))

    def _lowest(self, more: list[tuple[int, OrderingKey]]) -> list[tuple[int, OrderingKey]] | None:
        """Where the event with the lowest sequence is that may be handed out."""
        fresh = self._fresh if len(self._retrying) <= MAX_RETRYING_KEYS else []
        return min((heap for heap in (self._again, fresh, more) if heap), key=_head, default=None)


def _head(heap: list[tuple[int, OrderingKey]]) -> tuple[int, OrderingKey]:
    return heap[0]

"""Reads the log once for many subscriptions and hands matching events to their SubscriptionWorkers.

Most queues are at the end of the log and share one read position; there, an event costs nothing for subscriptions that
do not want it. Queues that lag, because they are new, were full or replay, are read for separately, one chunk a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from domain.subscriptions.subscription_index import SubscriptionIndex
from projections.subscriptions.decisions.delivery_queue import DeliveryQueue, LogTail
from projections.subscriptions.decisions.delivery_state import LIVE, REPLAY
from projections.subscriptions.event_messages import CHUNK_POSITIONS, EventMessage
from projections.subscriptions.sequence import last_sequence, position_of
from projections.subscriptions.workers.subscription_worker import SubscriptionWorker

#: Messages that are matched before other tasks get a turn: about one millisecond of work.
_SLICE: Final = 20
#: Seconds to sleep between slices that are not urgent. A thread that only yields gets its turn back before another
#: thread wakes up.
_YIELD_SECONDS: Final = 0.0005
#: Number of subscriptions from which on an index is used instead of checking each.
_MANY: Final = 16

#: Reads a chunk of the log after one position and at most up to another; returns its end and its messages.
ReadChunk = Callable[[int, int], Awaitable[tuple[int, list[EventMessage]]]]
_Key = tuple[str, int]


class _LaggingQueue(NamedTuple):
    """A queue that is not at the end of the log. after: its position."""

    worker: SubscriptionWorker
    number: int
    queue: DeliveryQueue
    after: int


class EventDispatcher:
    """Dispatches events of the log to subscriptions. Belongs to one event loop."""

    def __init__(self, pieces: ReadChunk) -> None:
        self._read_chunk = pieces
        self._index = SubscriptionIndex[str]()
        self._tail = LogTail()
        self._live: dict[str, SubscriptionWorker] = {}
        self._lagging: dict[_Key, SubscriptionWorker] = {}

    def add(self, line: SubscriptionWorker) -> None:
        """Starts reading for a worker, under its current settings."""
        self._index.put(line.id, line.state.plan.event_filter.interest)
        self.read_more(line)

    def remove(self, line: SubscriptionWorker) -> None:
        """Stops reading for a worker."""
        self._index.remove(line.id)
        self._live.pop(line.id, None)
        self._lagging.pop((line.id, LIVE), None)
        self._lagging.pop((line.id, REPLAY), None)

    def read_more(self, line: SubscriptionWorker) -> None:
        """Queues a worker for reading, because its position was reset or it has room again."""
        self._live.pop(line.id, None)
        for number in (LIVE, REPLAY):
            if number in line.state.queues:
                line.state.queues[number].leave_tail()
                self._lagging[line.id, number] = line

    async def read_once(self, head: int) -> bool:
        """Whether any of the log was read. head: its last position."""
        behind = list(self._lagging_queues())
        at = position_of(self._tail.sequence + 1) - 1
        if not self._live:
            self._tail.sequence = last_sequence(head)  # no subscription is at the shared position
        elif at < head:
            await self._read_tail(at, head)
        if not behind:
            return at < head
        near, far = max(each.after for each in behind), min(each.after for each in behind)
        for after in {near, far}:
            await self._read_lagging(behind, after)
        return True

    def _lagging_queues(self) -> Iterator[_LaggingQueue]:
        """The queues to read for now. Those that have caught up join the shared position.

        Full or stopped queues are dropped until the worker calls `read_more`.
        """
        at = position_of(self._tail.sequence + 1) - 1
        for key, line in list(self._lagging.items()):
            lane = line.state.queues.get(key[1])
            after = position_of(lane.read_up_to + 1) - 1 if lane is not None else 0
            if lane is None or line.state.stopped or not lane.has_room():
                del self._lagging[key]
            elif after < (at if lane.end is None else min(at, lane.end)):
                yield _LaggingQueue(line, key[1], lane, after)
            elif lane.end is None:
                del self._lagging[key]
                if after == at:
                    lane.join_tail(self._tail)
                    self._live[line.id] = line
                else:
                    self._lagging[key] = line  # it starts at a position that the log has not reached
            elif after >= lane.end:
                del self._lagging[key]

    async def _read_tail(self, after: int, head: int) -> None:
        end, messages = await self._read_chunk(after, head)
        async for some in _slices(messages):
            pumped: dict[SubscriptionWorker, None] = {}
            for told in some:
                for id in self._candidates(told, self._live):
                    line = self._live.get(id)
                    if line is None or not line.matches(LIVE, told):
                        continue
                    if line.state.stopped or not line.state.offer(LIVE, told):
                        self.read_more(line)
                    pumped[line] = None
            for line in pumped:
                line.start_attempts()
        self._tail.sequence = last_sequence(end)

    async def _read_lagging(self, behind: Iterable[_LaggingQueue], after: int) -> None:
        """Reads the chunk after a position, for the queues that are at it or inside the chunk."""
        at = position_of(self._tail.sequence + 1) - 1
        some = {
            (each.worker.id, each.number): each
            for each in behind
            if after <= each.after < min(at, after + CHUNK_POSITIONS)
        }
        reads = {key: each.queue.read_up_to for key, each in some.items()}
        end, messages = await self._read_chunk(after, at)
        async for slice in _slices(messages, _YIELD_SECONDS):
            lines: dict[SubscriptionWorker, None] = {}
            for told in slice:
                for key in self._keys(told, some):
                    each = some.get(key)
                    if each is None:
                        continue
                    before = reads[key]
                    if not self._offer(each, told, reads):
                        del some[key]
                    if reads[key] != before:
                        lines[each.worker] = None
            for line in lines:
                line.start_attempts()
        for key, each in some.items():
            if each.queue.read_up_to == reads[key]:
                each.queue.skip_to(end if each.queue.end is None else min(end, each.queue.end))
                if each.number == REPLAY:
                    each.worker.start_attempts()  # it may have ended

    def _offer(self, each: _LaggingQueue, told: EventMessage, reads: dict[_Key, int]) -> bool:
        """Whether the queue takes more of the chunk: it was not reset meanwhile, and has room."""
        key = (each.worker.id, each.number)
        if each.queue.read_up_to != reads[key] or self._lagging.get(key) is not each.worker:
            return False
        if each.queue.end is not None and told.sequence > last_sequence(each.queue.end):
            return True
        if told.sequence <= each.queue.read_up_to or not each.worker.matches(each.number, told):
            return True
        has_room = each.worker.state.offer(each.number, told)
        reads[key] = told.sequence
        return has_room

    def _keys(self, told: EventMessage, some: dict[_Key, _LaggingQueue]) -> Sequence[_Key]:
        if len(some) < _MANY:
            return list(some)
        return [(id, number) for id in self._index.candidates(told.attributes) for number in (LIVE, REPLAY)]

    def _candidates(self, told: EventMessage, lines: dict[str, SubscriptionWorker]) -> Sequence[str]:
        return list(lines) if len(lines) < _MANY else self._index.candidates(told.attributes)


async def _slices(messages: Sequence[EventMessage], breath: float = 0.0) -> AsyncIterator[Sequence[EventMessage]]:
    """The messages in slices. Other tasks run in between; with a breath above 0, other threads too."""
    for start in range(0, len(messages), _SLICE):
        if start:
            await asyncio.sleep(breath)
        yield messages[start : start + _SLICE]

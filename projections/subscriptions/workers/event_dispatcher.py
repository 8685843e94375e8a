"""Reads the log once for many subscriptions and hands matching events to their SubscriptionWorkers.

Most queues are at the end of the log and share one read position; there, an event costs nothing for subscriptions that
do not want it. Queues that lag, because they are new, were full or replay, are read for separately, one chunk a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from annals.domain.subscriptions.subscription_index import SubscriptionIndex
from annals.projections.subscriptions.decisions.delivery_queue import LIVE, REPLAY, DeliveryQueue, LogTail
from annals.projections.subscriptions.event_messages import CHUNK_POSITIONS, EventMessage
from annals.projections.subscriptions.sequence import last_sequence, position_of
from annals.projections.subscriptions.workers.subscription_worker import SubscriptionWorker

#: Messages that are matched before other tasks get a turn: about one millisecond of work.
_SLICE_SIZE: Final = 20
#: Seconds to sleep between slices that are not urgent. A thread that only yields gets its turn back before another
#: thread wakes up.
_YIELD_SECONDS: Final = 0.0005
#: Number of subscriptions from which on an index is used instead of checking each.
_INDEX_THRESHOLD: Final = 16

#: Reads a chunk of the log after one position and at most up to another; returns its end and its messages.
ReadChunk = Callable[[int, int], Awaitable[tuple[int, list[EventMessage]]]]
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _LaggingQueue:
    """A queue that is not at the end of the log, from one call of `read_more` to the next.

    Each call replaces it, and a chunk that is being read for it then ends for it: the queue may continue at another
    position now, and its subscription may want other events of the chunk.
    """

    worker: SubscriptionWorker
    number: int
    queue: DeliveryQueue

    @property
    def key(self) -> _Key:
        return self.worker.id, self.number

    @property
    def after(self) -> int:
        """The position up to which the log was read."""
        return position_of(self.queue.read_up_to + 1) - 1


class EventDispatcher:
    """Dispatches events of the log to subscriptions. Belongs to one event loop."""

    def __init__(self, read_chunk: ReadChunk) -> None:
        self._read_chunk = read_chunk
        self._index = SubscriptionIndex[str]()
        self._tail = LogTail()
        self._live: dict[str, SubscriptionWorker] = {}
        self._lagging: dict[_Key, _LaggingQueue] = {}

    def add(self, worker: SubscriptionWorker) -> None:
        """Starts reading for a worker, under its current settings."""
        self._index.put(worker.id, worker.state.plan.event_filter.interest)
        self.read_more(worker)

    def remove(self, worker: SubscriptionWorker) -> None:
        """Stops reading for a worker."""
        self._index.remove(worker.id)
        self._live.pop(worker.id, None)
        self._lagging.pop((worker.id, LIVE), None)
        self._lagging.pop((worker.id, REPLAY), None)

    def read_more(self, worker: SubscriptionWorker) -> None:
        """Queues a worker for reading, because its position was reset or it has room again."""
        self._live.pop(worker.id, None)
        for number in (LIVE, REPLAY):
            self._lagging.pop((worker.id, number), None)
            if (queue := worker.state.queues.get(number)) is not None:
                queue.leave_tail()
                self._lagging[worker.id, number] = _LaggingQueue(worker, number, queue)

    async def read_once(self, head: int) -> bool:
        """Whether any of the log was read. head: its last position."""
        lagging_queues = list(self._lagging_queues())
        tail_position = position_of(self._tail.sequence + 1) - 1
        if not self._live:
            self._tail.sequence = last_sequence(head)  # no subscription is at the shared position
        elif tail_position < head:
            await self._read_tail(tail_position, head)
        if not lagging_queues:
            return tail_position < head
        nearest_position, farthest_position = (
            max(lagging_queue.after for lagging_queue in lagging_queues),
            min(lagging_queue.after for lagging_queue in lagging_queues),
        )
        for after in {nearest_position, farthest_position}:
            await self._read_lagging(lagging_queues, after)
        return True

    def _lagging_queues(self) -> Iterator[_LaggingQueue]:
        """The queues to read for now. Those that have caught up join the shared position.

        Full or stopped queues are dropped until the worker calls `read_more`.
        """
        tail_position = position_of(self._tail.sequence + 1) - 1
        for key, lagging_queue in list(self._lagging.items()):
            worker, queue, after = lagging_queue.worker, lagging_queue.queue, lagging_queue.after
            has_ended = queue.end is not None and after >= queue.end
            if worker.state.stop_reason or has_ended or not queue.has_room():
                del self._lagging[key]
            elif after < tail_position:
                yield lagging_queue
            elif queue.end is None and after == tail_position:  # others start where the log has not reached yet
                del self._lagging[key]
                queue.join_tail(self._tail)
                self._live[worker.id] = worker

    async def _read_tail(self, after: int, head: int) -> None:
        end, messages = await self._read_chunk(after, head)
        async for events in _slices(messages):
            with _starting_attempts() as touched_workers:
                for event in events:
                    for id in self._candidates(event, self._live):
                        worker = self._live.get(id)
                        if worker is not None and worker.matches(LIVE, event):
                            touched_workers[worker] = None
                            self._offer_at_tail(worker, event)
        self._tail.sequence = last_sequence(end)

    def _offer_at_tail(self, worker: SubscriptionWorker, event: EventMessage) -> None:
        if event.sequence <= worker.state.queues[LIVE].read_up_to:
            return  # a failure had the chunk read again
        if worker.state.stop_reason or not worker.state.offer(LIVE, event):
            self.read_more(worker)

    async def _read_lagging(self, lagging_queues: Iterable[_LaggingQueue], after: int) -> None:
        """Reads the chunk after a position, for the queues that are at it or inside the chunk."""
        tail_position = position_of(self._tail.sequence + 1) - 1
        queues = {
            lagging_queue.key: lagging_queue
            for lagging_queue in lagging_queues
            if after <= lagging_queue.after < min(tail_position, after + CHUNK_POSITIONS)
        }
        end, messages = await self._read_chunk(after, tail_position)
        async for events in _slices(messages, _YIELD_SECONDS):
            with _starting_attempts() as touched_workers:
                for event in events:
                    for key in self._keys(event, queues):
                        lagging_queue = queues.get(key)
                        if lagging_queue is not None and not self._offer(lagging_queue, event, touched_workers):
                            del queues[key]
        for key, lagging_queue in queues.items():
            if self._lagging.get(key) is lagging_queue:
                queue = lagging_queue.queue
                queue.skip_to(end if queue.end is None else min(end, queue.end))
                if lagging_queue.number == REPLAY:
                    lagging_queue.worker.start_attempts()  # it may have ended

    def _offer(
        self, lagging_queue: _LaggingQueue, event: EventMessage, touched_workers: dict[SubscriptionWorker, None]
    ) -> bool:
        """Whether the queue takes more of the chunk: `read_more` was not called meanwhile, and it has room."""
        if self._lagging.get(lagging_queue.key) is not lagging_queue:
            return False
        worker, number, queue = lagging_queue.worker, lagging_queue.number, lagging_queue.queue
        is_beyond_end = queue.end is not None and event.sequence > last_sequence(queue.end)
        if event.sequence <= queue.read_up_to or is_beyond_end or not worker.matches(number, event):
            return True
        touched_workers[worker] = None
        return worker.state.offer(number, event)

    def _keys(self, event: EventMessage, queues: dict[_Key, _LaggingQueue]) -> Sequence[_Key]:
        if len(queues) < _INDEX_THRESHOLD:
            return list(queues)
        return [(id, number) for id in self._index.candidates(event.attributes) for number in (LIVE, REPLAY)]

    def _candidates(self, event: EventMessage, workers: dict[str, SubscriptionWorker]) -> Sequence[str]:
        return list(workers) if len(workers) < _INDEX_THRESHOLD else self._index.candidates(event.attributes)


@contextmanager
def _starting_attempts() -> Iterator[dict[SubscriptionWorker, None]]:
    """Collects the workers that were offered events, and finally starts their attempts.

    Also after a failure: these events are not offered again, so nothing else would start them.
    """
    touched_workers: dict[SubscriptionWorker, None] = {}
    try:
        yield touched_workers
    finally:
        for worker in touched_workers:
            worker.start_attempts()


async def _slices(
    messages: Sequence[EventMessage], pause_seconds: float = 0.0
) -> AsyncIterator[Sequence[EventMessage]]:
    """The messages in slices. Other tasks run in between; with `pause_seconds` above 0, other threads too."""
    for start in range(0, len(messages), _SLICE_SIZE):
        if start:
            await asyncio.sleep(pause_seconds)
        yield messages[start : start + _SLICE_SIZE]

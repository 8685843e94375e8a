"""Reads the log once for many subscriptions and hands matching events to their SubscriptionWorkers.

Most queues are at the end of the log and share one read position; there, an event costs nothing for subscriptions that
do not want it. Queues that lag, because they are new, were full or replay, are read for separately, one chunk a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from annals.domain.subscriptions.subscription_index import SubscriptionIndex
from annals.projections.subscriptions.decisions.delivery_queue import DeliveryQueue, LogTail
from annals.projections.subscriptions.decisions.delivery_state import LIVE, REPLAY
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


class _LaggingQueue(NamedTuple):
    """A queue that is not at the end of the log. after: its position."""

    worker: SubscriptionWorker
    number: int
    queue: DeliveryQueue
    after: int


class EventDispatcher:
    """Dispatches events of the log to subscriptions. Belongs to one event loop."""

    def __init__(self, read_chunk: ReadChunk) -> None:
        self._read_chunk = read_chunk
        self._index = SubscriptionIndex[str]()
        self._tail = LogTail()
        self._live: dict[str, SubscriptionWorker] = {}
        self._lagging: dict[_Key, SubscriptionWorker] = {}

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
            if number in worker.state.queues:
                worker.state.queues[number].leave_tail()
                self._lagging[worker.id, number] = worker

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
        for key, worker in list(self._lagging.items()):
            queue = worker.state.queues.get(key[1])
            after = position_of(queue.read_up_to + 1) - 1 if queue is not None else 0
            if queue is None or worker.state.stop_reason or not queue.has_room():
                del self._lagging[key]
            elif after < (tail_position if queue.end is None else min(tail_position, queue.end)):
                yield _LaggingQueue(worker, key[1], queue, after)
            elif queue.end is None:
                del self._lagging[key]
                if after == tail_position:
                    queue.join_tail(self._tail)
                    self._live[worker.id] = worker
                else:
                    self._lagging[key] = worker  # it starts at a position that the log has not reached
            elif after >= queue.end:
                del self._lagging[key]

    async def _read_tail(self, after: int, head: int) -> None:
        end, messages = await self._read_chunk(after, head)
        async for events in _slices(messages):
            touched_workers: dict[SubscriptionWorker, None] = {}
            for event in events:
                for id in self._candidates(event, self._live):
                    worker = self._live.get(id)
                    if worker is None or not worker.matches(LIVE, event):
                        continue
                    if worker.state.stop_reason or not worker.state.offer(LIVE, event):
                        self.read_more(worker)
                    touched_workers[worker] = None
            for worker in touched_workers:
                worker.start_attempts()
        self._tail.sequence = last_sequence(end)

    async def _read_lagging(self, lagging_queues: Iterable[_LaggingQueue], after: int) -> None:
        """Reads the chunk after a position, for the queues that are at it or inside the chunk."""
        tail_position = position_of(self._tail.sequence + 1) - 1
        queues = {
            (lagging_queue.worker.id, lagging_queue.number): lagging_queue
            for lagging_queue in lagging_queues
            if after <= lagging_queue.after < min(tail_position, after + CHUNK_POSITIONS)
        }
        read_sequences = {key: lagging_queue.queue.read_up_to for key, lagging_queue in queues.items()}
        end, messages = await self._read_chunk(after, tail_position)
        async for events in _slices(messages, _YIELD_SECONDS):
            touched_workers: dict[SubscriptionWorker, None] = {}
            for event in events:
                for key in self._keys(event, queues):
                    lagging_queue = queues.get(key)
                    if lagging_queue is None:
                        continue
                    previous_sequence = read_sequences[key]
                    if not self._offer(lagging_queue, event, read_sequences):
                        del queues[key]
                    if read_sequences[key] != previous_sequence:
                        touched_workers[lagging_queue.worker] = None
            for worker in touched_workers:
                worker.start_attempts()
        for key, lagging_queue in queues.items():
            if lagging_queue.queue.read_up_to == read_sequences[key]:
                lagging_queue.queue.skip_to(
                    end if lagging_queue.queue.end is None else min(end, lagging_queue.queue.end)
                )
                if lagging_queue.number == REPLAY:
                    lagging_queue.worker.start_attempts()  # it may have ended

    def _offer(self, lagging_queue: _LaggingQueue, event: EventMessage, read_sequences: dict[_Key, int]) -> bool:
        """Whether the queue takes more of the chunk: it was not reset meanwhile, and has room."""
        key = (lagging_queue.worker.id, lagging_queue.number)
        if lagging_queue.queue.read_up_to != read_sequences[key] or self._lagging.get(key) is not lagging_queue.worker:
            return False
        if lagging_queue.queue.end is not None and event.sequence > last_sequence(lagging_queue.queue.end):
            return True
        if event.sequence <= lagging_queue.queue.read_up_to or not lagging_queue.worker.matches(
            lagging_queue.number, event
        ):
            return True
        has_room = lagging_queue.worker.state.offer(lagging_queue.number, event)
        read_sequences[key] = event.sequence
        return has_room

    def _keys(self, event: EventMessage, queues: dict[_Key, _LaggingQueue]) -> Sequence[_Key]:
        if len(queues) < _INDEX_THRESHOLD:
            return list(queues)
        return [(id, number) for id in self._index.candidates(event.attributes) for number in (LIVE, REPLAY)]

    def _candidates(self, event: EventMessage, workers: dict[str, SubscriptionWorker]) -> Sequence[str]:
        return list(workers) if len(workers) < _INDEX_THRESHOLD else self._index.candidates(event.attributes)


async def _slices(
    messages: Sequence[EventMessage], pause_seconds: float = 0.0
) -> AsyncIterator[Sequence[EventMessage]]:
    """The messages in slices. Other tasks run in between; with `pause_seconds` above 0, other threads too."""
    for start in range(0, len(messages), _SLICE_SIZE):
        if start:
            await asyncio.sleep(pause_seconds)
        yield messages[start : start + _SLICE_SIZE]

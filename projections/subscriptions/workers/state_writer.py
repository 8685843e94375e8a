"""Writes the delivery state of workers, in batches and shortly after it changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

from annals.projections.database.state_database import StateDatabase
from annals.projections.subscriptions.state import delivery_queries
from annals.projections.subscriptions.workers.subscription_worker import SubscriptionWorker
from annals.projections.subscriptions.workers.threads import WorkerThread

#: Seconds between two writes of the cursors of idle subscriptions, and of those whose attempts have no result yet.
IDLE_SECONDS: Final = 5.0


class DeliveryProgress(NamedTuple):
    """The progress of deliveries. pending: events that are queued or being sent."""

    cursor: int
    pending: int

    @classmethod
    def from_worker(cls, worker: SubscriptionWorker) -> DeliveryProgress:
        """The progress of a worker. Raises: RuntimeError in another thread while the worker is changing."""
        return cls(worker.state.cursor, worker.state.pending)


class StateWriter:
    """Writes the state of the workers of one process.

    process: name that holds the leases; only subscriptions that it holds are written.
    delay: seconds from a change until it is written.
    """

    def __init__(
        self, thread: WorkerThread, store: StateDatabase, workers: Mapping[str, SubscriptionWorker], delay: float
    ) -> None:
        self.process = ""
        self._thread, self._store = thread, store
        self._workers = workers
        self._delay = delay
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._changed_workers: dict[SubscriptionWorker, None] = {}
        self._written_progress: dict[str, DeliveryProgress] = {}
        self._next_idle_write = 0.0
        self._removed_ids: set[str] = set()

    def save_soon(self, worker: SubscriptionWorker) -> None:
        """Schedules a write of a worker's state."""
        if not self._changed_workers:
            self._wake.set()
        self._changed_workers[worker] = None

    def delete_soon(self, id: str) -> None:
        """Schedules the deletion of a subscription's state."""
        self._removed_ids.add(id)
        self._wake.set()

    def remove_worker(self, worker: SubscriptionWorker) -> None:
        """Stops writing the state of a worker."""
        self._changed_workers.pop(worker, None)
        self._written_progress.pop(worker.id, None)

    async def run_once(self) -> None:
        """Writes changes shortly after they happen, and now and then the cursors of idle subscriptions."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            pass
        else:
            await asyncio.sleep(self._delay)
        if time.monotonic() >= self._next_idle_write:
            self._next_idle_write = time.monotonic() + IDLE_SECONDS
            for worker in self._workers.values():
                if self._written_progress.get(worker.id) != DeliveryProgress.from_worker(worker):
                    self._changed_workers[worker] = None
        self._wake.clear()
        await self.save()

    async def save(self, workers: Iterable[SubscriptionWorker] = ()) -> Set[str]:
        """Writes all changes now. workers: workers to write even if they did not change.

        Returns the ids of the subscriptions whose state was written; others have moved to another process.
        """
        self._changed_workers |= dict.fromkeys(workers)
        async with self._lock:
            changed_workers, deleted_ids = list(self._changed_workers), set(self._removed_ids)
            self._changed_workers.clear()
            current_workers = [worker for worker in changed_workers if self._is_current(worker)]
            updates = [worker.state_update() for worker in current_workers]
            progress = [DeliveryProgress.from_worker(worker) for worker in current_workers]
            if not updates and not deleted_ids:
                return frozenset()
            try:
                saved_ids = await self._thread.run(self._save, self.process, updates, deleted_ids)
            except BaseException:
                self._changed_workers |= dict.fromkeys(changed_workers)
                self._wake.set()
                raise
            self._removed_ids -= deleted_ids
            for worker, update, written_progress in zip(current_workers, updates, progress, strict=True):
                if self._is_current(worker) and worker.id in saved_ids:
                    worker.mark_written(update)
                    self._written_progress[worker.id] = written_progress
            return saved_ids

    def _is_current(self, worker: SubscriptionWorker) -> bool:
        """Whether a worker still delivers for its subscription; another one may have replaced it."""
        return self._workers.get(worker.id) is worker

    def _save(self, process: str, updates: Sequence[delivery_queries.StateUpdate], deleted_ids: set[str]) -> set[str]:
        with self._store.writing() as db:
            if deleted_ids:
                delivery_queries.delete_subscriptions(db, deleted_ids)
            return delivery_queries.save_updates(db, process, updates)

"""Writes the delivery state of workers, in batches and shortly after it changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from projections.subscriptions.state import delivery_queries
from projections.subscriptions.state.delivery_store import DeliveryStore
from projections.subscriptions.workers.subscription_worker import SubscriptionWorker
from projections.subscriptions.workers.threads import WorkerThread

#: Seconds between two writes of the cursors of idle subscriptions, and of those whose attempts have no result yet.
IDLE_SECONDS: Final = 5.0


class DeliveryProgress(NamedTuple):
    """The progress of deliveries. pending: events that are queued or being sent."""

    cursor: int
    pending: int

    @classmethod
    def of(cls, line: SubscriptionWorker) -> DeliveryProgress:
        """The progress of a worker. Raises: RuntimeError in another thread while the worker is changing."""
        return cls(line.state.cursor, line.state.pending)


class StateWriter:
    """Writes the state of the workers of one process.

    process: name that holds the leases; only subscriptions that it holds are written.
    after: seconds from a change until it is written.
    """

    def __init__(
        self, worker: WorkerThread, books: DeliveryStore, lines: Mapping[str, SubscriptionWorker], after: float
    ) -> None:
        self.process = ""
        self._worker, self._store = worker, books
        self._workers = lines
        self._after = after
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()
        self._dirty: dict[SubscriptionWorker, None] = {}
        self._written_progress: dict[str, DeliveryProgress] = {}
        self._quiet = 0.0
        self._removed: set[str] = set()

    def save_soon(self, line: SubscriptionWorker) -> None:
        """Schedules a write of a worker's state."""
        if not self._dirty:
            self._wake.set()
        self._dirty[line] = None

    def delete_soon(self, id: str) -> None:
        """Schedules the deletion of a subscription's state."""
        self._removed.add(id)
        self._wake.set()

    def remove_worker(self, line: SubscriptionWorker) -> None:
        """Stops writing the state of a worker."""
        self._dirty.pop(line, None)
        self._written_progress.pop(line.id, None)

    async def run_once(self) -> None:
        """Writes changes shortly after they happen, and now and then the cursors of idle subscriptions."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            pass
        else:
            await asyncio.sleep(self._after)
        if time.monotonic() >= self._quiet:
            self._quiet = time.monotonic() + IDLE_SECONDS
            for line in self._workers.values():
                if self._written_progress.get(line.id) != DeliveryProgress.of(line):
                    self._dirty[line] = None
        self._wake.clear()
        await self.save()

    async def save(self, lines: Iterable[SubscriptionWorker] = ()) -> None:
        """Writes all changes now. lines: workers to write even if they did not change."""
        self._dirty |= dict.fromkeys(lines)
        async with self._lock:
            dirty, gone = list(self._dirty), set(self._removed)
            self._dirty.clear()
            pages = [line.page() for line in dirty if self._workers.get(line.id) is line]
            progress = {page.id: DeliveryProgress.of(self._workers[page.id]) for page in pages}
            if not pages and not gone:
                return
            try:
                held = await self._worker.run(self._save, self.process, pages, gone)
            except BaseException:
                self._dirty |= dict.fromkeys(dirty)
                self._wake.set()
                raise
            self._removed -= gone
            for page in pages:
                line = self._workers.get(page.id)
                if line is not None and page.id in held:
                    line.mark_written(page)
                    self._written_progress[page.id] = progress[page.id]

    def _save(self, process: str, pages: Sequence[delivery_queries.StateUpdate], gone: set[str]) -> set[str]:
        with self._store.writing() as db:
            if gone:
                delivery_queries.delete_subscriptions(db, gone)
            return delivery_queries.save_updates(db, process, pages)

"""Handles requests of other processes, and deletes expired state.

It runs apart from the lease manager, which must not wait for long writes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Final

from annals.projections.database.state_database import StateDatabase
from annals.projections.subscriptions.state import delivery_queries
from annals.projections.subscriptions.state.delivery_queries import DeliveryRequest
from annals.projections.subscriptions.workers.subscription_worker import SubscriptionWorker
from annals.projections.subscriptions.workers.threads import WorkerThread

#: Seconds between two deletions of expired state, and seconds that dead letters are kept (SUB-831).
SWEEP_SECONDS: Final = 3600.0
DEAD_LETTER_SECONDS: Final = 30 * 86400.0
#: Seconds between two checks for requests.
_INTERVAL_SECONDS: Final = 1.0


class Housekeeping:
    """Periodic work on the delivery tables. save: see `StateWriter.save`. now: seconds since 1970."""

    def __init__(
        self,
        thread: WorkerThread,
        store: StateDatabase,
        workers: Mapping[str, SubscriptionWorker],
        save: Callable[[Sequence[SubscriptionWorker]], Awaitable[Collection[str]]],
        now: Callable[[], float],
    ) -> None:
        self._thread, self._store = thread, store
        self._workers = workers
        self._save = save
        self._now = now
        self._wake = asyncio.Event()
        self._next_sweep = 0.0

    def run_soon(self) -> None:
        """Handles requests now."""
        self._wake.set()

    async def run_once(self) -> None:
        """Does the work that is due, then waits for more."""
        self._wake.clear()  # before the work, so that a request that comes meanwhile is not forgotten
        await self._apply_requests()
        if time.monotonic() >= self._next_sweep:
            self._next_sweep = time.monotonic() + SWEEP_SECONDS
            await self._thread.run(self._sweep)
        with suppress(TimeoutError):
            async with asyncio.timeout(_INTERVAL_SECONDS):
                await self._wake.wait()

    async def _apply_requests(self) -> None:
        """Applies requests of other processes. Each stays until what it changes is stored, also by another process."""
        requests = await self._thread.run(self._read_requests, list(self._workers))
        workers = {each.subscription: self._workers.get(each.subscription) for each in requests}
        for request in requests:
            worker = workers[request.subscription]
            if worker is not None and request.name == "consent" and isinstance(request.value, str):
                sink_hash, _, rate = request.value.partition(" ")
                worker.grant(sink_hash, int(rate) if rate.isdecimal() else None)
        if requests:
            saved_ids = await self._save([worker for worker in workers.values() if worker is not None])
            await self._thread.run(self._delete_requests, [each for each in requests if each.subscription in saved_ids])

    def _read_requests(self, ids: Sequence[str]) -> list[DeliveryRequest]:
        with self._store.reading() as db:
            return delivery_queries.read_requests(db, ids)

    def _delete_requests(self, requests: Sequence[DeliveryRequest]) -> None:
        with self._store.writing() as db:
            delivery_queries.delete_requests(db, requests)

    def _sweep(self) -> None:
        with self._store.writing() as db:
            delivery_queries.delete_expired(db, self._now(), DEAD_LETTER_SECONDS)

"""Manages which subscriptions this process delivers for, and shares them with other processes (SUB-805)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from annals.commands.store.database.driver_errors import driver_errors
from annals.projections.subscriptions.state import tables
from annals.projections.subscriptions.state.delivery_record import SavedDelivery
from annals.projections.subscriptions.state.leases import HeldLeases, Leases
from annals.projections.subscriptions.state.subscription_changes import SubscriptionChange
from annals.projections.subscriptions.workers.state_writer import StateWriter
from annals.projections.subscriptions.workers.subscription_follower import SubscriptionFollower
from annals.projections.subscriptions.workers.subscription_worker import SubscriptionWorker
from annals.projections.subscriptions.workers.threads import WorkerThread

#: Seconds that running attempts get to finish when a subscription is released or dropped.
GRACE_SECONDS: Final = 5.0


class LeasingDeliverer(Protocol):
    """The part of the deliverer that the lease manager uses."""

    @property
    def workers(self) -> Mapping[str, SubscriptionWorker]: ...
    @property
    def follower(self) -> SubscriptionFollower: ...
    @property
    def state_writer(self) -> StateWriter: ...

    def start_worker(self, id: str, changes: list[SubscriptionChange], saved: SavedDelivery | None) -> None:
        """Starts delivering for a subscription, from its saved state."""

    def remove_worker(self, worker: SubscriptionWorker) -> None:
        """Stops delivering for a subscription. Running attempts may finish."""

    def read_soon(self) -> None:
        """Makes the deliverer read the log now."""

    def start_task(self, coroutine: Coroutine[Any, Any, Any]) -> object:
        """Runs a coroutine as a task and keeps a reference to it."""

    def log_failure(self, error: Exception) -> None:
        """Logs an unexpected error."""


class LeaseManager:
    """Manages the leases of one process.

    lease_seconds: seconds without a heartbeat after which other processes take over.
    """

    def __init__(self, deliverer: LeasingDeliverer, url: str, lease_seconds: float) -> None:
        self._deliverer = deliverer
        self._worker = WorkerThread("leases")
        self._leases = Leases(url, lease_seconds, tables.LEASES)
        self._renew_seconds = min(1.0, lease_seconds / 5)
        self._wake = asyncio.Event()
        self._valid_until = 0.0
        self._has_lapsed = False
        self._releasing_ids: set[str] = set()

    @property
    def is_valid(self) -> bool:
        """Whether the leases are still valid."""
        self._has_lapsed = time.monotonic() >= self._valid_until
        return not self._has_lapsed

    def renew_soon(self) -> None:
        """Requests a heartbeat now, because a new subscription has no process yet."""
        self._wake.set()

    async def renew(self) -> None:
        """Sends a heartbeat, takes free leases, and releases surplus ones."""
        self._wake.clear()
        follower = self._deliverer.follower
        await follower.catch_up()
        leases = await self._worker.run(self._leases.renew, list(follower.last_changes))
        if leases is not None:
            await self._apply_leases(leases)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._renew_seconds):
                await self._wake.wait()

    async def release_all(self) -> None:
        """Releases all leases."""
        await self._worker.run(self._leases.release_all)

    def close(self) -> None:
        """Closes the thread and the connection without releasing leases."""
        self._worker.close()
        self._leases.close()

    async def _apply_leases(self, leases: HeldLeases) -> None:
        """Starts and stops workers, so that exactly the held subscriptions are delivered for."""
        deliverer, workers = self._deliverer, self._deliverer.workers
        is_new_process = leases.process != deliverer.state_writer.process
        deliverer.state_writer.process = leases.process
        for worker in list(workers.values()):
            if is_new_process or worker.id not in leases.ids:
                deliverer.remove_worker(worker)
        had_lapsed, self._valid_until = self._has_lapsed, leases.expires
        if had_lapsed:
            for worker in workers.values():
                worker.start_attempts()
        last_changes = deliverer.follower.last_changes
        missing_ids = [id for id in leases.ids - self._releasing_ids if id in last_changes and id not in workers]
        if missing_ids:
            await deliverer.follower.load_histories(missing_ids, deliverer.start_worker)
            deliverer.read_soon()
        surplus_workers = [workers[id] for id in leases.surplus_ids - self._releasing_ids if id in workers]
        if surplus_workers:
            self._releasing_ids |= {worker.id for worker in surplus_workers}
            deliverer.start_task(self._release(surplus_workers))

    async def _release(self, workers: Sequence[SubscriptionWorker]) -> None:
        """Releases subscriptions to other processes, after writing their state."""
        ids = [worker.id for worker in workers]
        try:
            await asyncio.gather(*(worker.close(GRACE_SECONDS) for worker in workers))
            await self._deliverer.state_writer.save(workers)
        except driver_errors() as error:
            self._deliverer.log_failure(error)  # the next process repeats some deliveries
        for worker in workers:
            self._deliverer.remove_worker(worker)
        try:
            await self._worker.run(self._leases.release, ids)
        finally:
            self._releasing_ids.difference_update(ids)

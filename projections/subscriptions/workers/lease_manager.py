"""Manages which subscriptions this process delivers for, and shares them with other processes (SUB-805)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from projections.subscriptions.state import tables
from projections.subscriptions.state.delivery_record import SavedDelivery
from projections.subscriptions.state.delivery_store import DRIVER_ERRORS
from projections.subscriptions.state.leases import HeldLeases, Leases
from projections.subscriptions.state.subscription_changes import SubscriptionChange
from projections.subscriptions.workers.state_writer import StateWriter
from projections.subscriptions.workers.subscription_follower import SubscriptionFollower
from projections.subscriptions.workers.subscription_worker import SubscriptionWorker
from projections.subscriptions.workers.threads import WorkerThread

#: Seconds that running attempts get to finish when a subscription is released or dropped.
GRACE_SECONDS: Final = 5.0


class Lines(Protocol):
    """The part of the deliverer that the lease manager uses."""

    @property
    def lines(self) -> Mapping[str, SubscriptionWorker]: ...
    @property
    def following(self) -> SubscriptionFollower: ...
    @property
    def saving(self) -> StateWriter: ...

    def begin(self, id: str, changes: list[SubscriptionChange], saved: SavedDelivery | None) -> None:
        """Starts delivering for a subscription, from its saved state."""

    def drop(self, line: SubscriptionWorker) -> None:
        """Stops delivering for a subscription. Running attempts may finish."""

    def wake(self) -> None:
        """Makes the deliverer read the log now."""

    def start(self, work: Coroutine[Any, Any, Any]) -> object:
        """Runs a coroutine as a task and keeps a reference to it."""

    def failed(self, error: Exception) -> None:
        """Logs an unexpected error."""


class LeaseManager:
    """Manages the leases of one process. lease: seconds without a heartbeat after which other processes take over."""

    def __init__(self, deliverer: Lines, url: str, lease: float) -> None:
        self._deliverer = deliverer
        self._worker = WorkerThread("leases")
        self._leases = Leases(url, lease, tables.LEASES)
        self._pause = min(1.0, lease / 5)
        self._hurry = asyncio.Event()
        self._until = 0.0
        self._lapsed = False
        self._leaving: set[str] = set()

    @property
    def lasts(self) -> bool:
        """Whether the leases are still valid."""
        self._lapsed = time.monotonic() >= self._until
        return not self._lapsed

    def hurry(self) -> None:
        """Requests a heartbeat now, because a new subscription has no process yet."""
        self._hurry.set()

    async def beat(self) -> None:
        """Sends a heartbeat, takes free leases, and releases surplus ones."""
        self._hurry.clear()
        following = self._deliverer.following
        await following.caught_up()
        found = await self._worker.do(self._leases.beat, list(following.known))
        if found is not None:
            await self._hold(found)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause):
                await self._hurry.wait()

    async def end(self) -> None:
        """Releases all leases."""
        await self._worker.do(self._leases.end)

    def close(self) -> None:
        """Closes the thread and the connection without releasing leases."""
        self._worker.close()
        self._leases.close()

    async def _hold(self, found: HeldLeases) -> None:
        """Starts and stops workers, so that exactly the held subscriptions are delivered for."""
        deliverer, lines = self._deliverer, self._deliverer.lines
        anew = found.process != deliverer.saving.process
        deliverer.saving.process = found.process
        for line in list(lines.values()):
            if anew or line.id not in found.held:
                deliverer.drop(line)
        lapsed, self._until = self._lapsed, found.until
        if lapsed:
            for line in lines.values():
                line.pump()
        known = deliverer.following.known
        missing = [id for id in found.held - self._leaving if id in known and id not in lines]
        if missing:
            await deliverer.following.histories(missing, deliverer.begin)
            deliverer.wake()
        surplus = [lines[id] for id in found.surplus - self._leaving if id in lines]
        if surplus:
            self._leaving |= {line.id for line in surplus}
            deliverer.start(self._let_go(surplus))

    async def _let_go(self, lines: Sequence[SubscriptionWorker]) -> None:
        """Releases subscriptions to other processes, after writing their state."""
        ids = [line.id for line in lines]
        try:
            await asyncio.gather(*(line.close(GRACE_SECONDS) for line in lines))
            await self._deliverer.saving.save(lines)
        except DRIVER_ERRORS as error:
            self._deliverer.failed(error)  # the next process repeats some deliveries
        for line in lines:
            self._deliverer.drop(line)
        try:
            await self._worker.do(self._leases.release, ids)
        finally:
            self._leaving.difference_update(ids)

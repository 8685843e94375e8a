"""Which subscriptions this process delivers for: taken over, let go and shared with other processes (SUB-805)."""

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

#: Seconds that attempts have to come to an end when others are to make them, or nobody.
GRACE_SECONDS: Final = 5.0


class Lines(Protocol):
    """What delivers, by subscription."""

    @property
    def lines(self) -> Mapping[str, SubscriptionWorker]: ...
    @property
    def following(self) -> SubscriptionFollower: ...
    @property
    def saving(self) -> StateWriter: ...

    def begin(self, id: str, changes: list[SubscriptionChange], saved: SavedDelivery | None) -> None:
        """Delivers for a subscription from now on, from where others have left off."""

    def drop(self, line: SubscriptionWorker) -> None:
        """Delivers no more for a subscription; attempts that run may end."""

    def wake(self) -> None:
        """Has the log read now."""

    def start(self, work: Coroutine[Any, Any, Any]) -> object:
        """Runs a coroutine as a task that is kept."""

    def failed(self, error: Exception) -> None:
        """Notes what should not have happened."""


class LeaseManager:
    """lease: seconds after which other processes take over from this one when it says nothing."""

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
        """Whether what was held is held still."""
        self._lapsed = time.monotonic() >= self._until
        return not self._lapsed

    def hurry(self) -> None:
        """There is something to hold that is nobody's yet."""
        self._hurry.set()

    async def beat(self) -> None:
        """Says that this process lives, takes what is free, and sees to what others wish."""
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
        """Lets other processes have everything."""
        await self._worker.do(self._leases.end)

    def close(self) -> None:
        """Gives thread and connection back and says nothing to others."""
        self._worker.close()
        self._leases.close()

    async def _hold(self, found: HeldLeases) -> None:
        """Delivers for what is held, and for nothing else."""
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
        """Lets other processes have subscriptions, once all about them is written."""
        ids = [line.id for line in lines]
        try:
            await asyncio.gather(*(line.close(GRACE_SECONDS) for line in lines))
            await self._deliverer.saving.save(lines)
        except DRIVER_ERRORS as error:
            self._deliverer.failed(error)  # the others will send some of it again
        for line in lines:
            self._deliverer.drop(line)
        try:
            await self._worker.do(self._leases.release, ids)
        finally:
            self._leaving.difference_update(ids)

"""One subscription's deliveries: what is attempted when, and what follows from it.

A line belongs to the event loop of its deliverer. Its workers each take what is next, attempt it and go on until
nothing can be attempted now; a timer starts them again. Spec: 8.1 to 8.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from domain.roles import group_of
from projections.subscriptions import orders
from projections.subscriptions.access import Access
from projections.subscriptions.attempt import LETTERS, LIVE, REPLAY, Attempt
from projections.subscriptions.consent import Consents
from projections.subscriptions.facts import Facts, Saved
from projections.subscriptions.hub import Hub
from projections.subscriptions.kept import Kept
from projections.subscriptions.known import Change
from projections.subscriptions.lane import EVERYTHING, Entry, Lane
from projections.subscriptions.match import Told
from projections.subscriptions.pace import Pace
from projections.subscriptions.plan import Plan

#: In what order they are served.
_TURNS: Final = (LETTERS, REPLAY, LIVE)
#: Requests at a time to sinks that take more than one.
WIDTH: Final = 32


class Line:
    """See the module. saved: what is stored of it; changes: events of its stream that came since, in order."""

    def __init__(self, hub: Hub, changes: Sequence[Change], saved: Saved | None) -> None:
        newest = changes[-1].subscription
        assert newest is not None
        self.hub = hub
        self.now = hub.ports.time.now
        self.id = newest.id
        self.facts = saved.facts if saved else Facts()
        self.revision = saved.revision if saved else 0
        self.position = saved.position if saved else 0
        self.lanes: dict[int, Lane] = {LETTERS: Lane(0, EVERYTHING, end=0)}
        self.busy: dict[str, None] = {}
        self.closed = False
        self._workers = 0
        self._idle = asyncio.Event()
        self._idle.set()
        if saved:
            self._restore(saved)
        self.subscription = newest
        self.plan = Plan.of(newest, hub.families)
        self.lanes.setdefault(LIVE, Lane(newest.starts - 1))
        self.access = Access(hub.ports, self.facts)
        self.consents = Consents(hub, self)
        self.pace = Pace(self)
        self.kept = Kept(self, saved.pending if saved else {})
        for change in changes:
            self.take(change)

    def _restore(self, saved: Saved) -> None:
        self.lanes[LIVE] = Lane(saved.cursor, saved.facts.reach)
        if replay := saved.facts.replay:
            self.lanes[REPLAY] = Lane(replay["cursor"], replay["reach"], replay["to"])
        for number, pending in saved.pending.items():
            if number in self.lanes:
                self.lanes[number].restore(pending)

    # --- what the log brings -----------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """Takes in the next event of its stream; one that was taken in before changes nothing."""
        subscription = change.subscription
        if subscription is None or change.revision <= self.revision:
            return
        self.subscription = subscription
        self.revision, self.position = change.revision, change.position
        if subscription.epoch != self.facts.epoch:
            orders.updated(self)
        elif subscription.action:
            orders.asked(self, subscription.action)
        self.hub.changed(self)
        self.pump()

    def wants(self, number: int, told: Told) -> bool:
        """Whether an event of the log is for one of its lanes."""
        return self.plan.wants.matches(told, live=number == LIVE) and self.may_read(told.message.xid)

    def offer(self, number: int, told: Told) -> bool:
        """Takes in an event that it wants; whether there is room for more."""
        lane = self.lanes[number]
        lane.offer(told, self.plan.key(told), self.plan.position)
        return lane.has_room()

    def may_read(self, xid: str) -> bool:
        """Whether the owner may read now what an event tells of (SUB-911)."""
        groups = self.subscription.groups
        if groups is not None and group_of(xid) not in groups:
            return False
        return self.hub.ports.reads(self.subscription.owner, xid)

    # --- what is attempted when --------------------------------------------------------------------------------------

    @property
    def stopped(self) -> str:
        """Why nothing is attempted until somebody does something; nothing where that is not so."""
        if self.subscription.paused:
            return "paused"
        if self.facts.state in ("gone", "suspended"):
            return self.facts.state
        if self.consents.awaited:
            return "pendingvalidation"
        return ""

    @property
    def may_start(self) -> bool:
        """Whether a request may be made now, as far as the subscription and the lease go."""
        return not (self.stopped or self.closed) and self.hub.may_send

    def pump(self) -> None:
        """Starts what can be started now, and sees to it that the rest is started when it can."""
        self.consents.see_to()
        while not self.closed and self._workers < self._width and (found := self._next()):
            self._workers += 1
            self._idle.clear()
            self.hub.start(self._work(*found))

    @property
    def _width(self) -> int:
        return 1 if self.plan.most > 1 else min(WIDTH, self.access.width)

    async def _work(self, number: int, lane: Lane, entries: list[Entry]) -> None:
        try:
            while True:
                await Attempt(self, number, lane, entries).made()
                self.hub.changed(self)
                if lane.is_full and lane.has_room():
                    self.hub.hungry(self)
                if not (found := None if self.closed or self._workers > self._width else self._next()):
                    break
                number, lane, entries = found
        except Exception as error:
            # The store cannot be read now, or somebody's secrets cannot; what was taken is back in its lane.
            self.hub.failed(error)
            self.pace.failed(self.now())
        finally:
            self._workers -= 1
            if not self._workers:
                self._idle.set()
        self.pump()

    def _next(self) -> tuple[int, Lane, list[Entry]] | None:
        """What is to be attempted now; sets the timer where that is nothing yet."""
        now = self.now()
        if self.stopped or not self.hub.may_send or self.pace.wait(self.pace.shut_until(now)):
            return None
        for number in _TURNS:
            lane = self.lanes.get(number)
            if lane is None or (number == LIVE and not self._is_parallel):
                continue
            wakes = lane.due(now)
            if lane.ready and self.pace.gathered(lane, now) and (entries := lane.take(self.plan.most, self._held)):
                self.busy |= dict.fromkeys(entry.key for entry in entries)
                self.pace.spend(now)
                return number, lane, entries
            self.pace.wait(wakes)
            if number == REPLAY and lane.has_ended:
                self._replayed()
        return None

    @property
    def _is_parallel(self) -> bool:
        return self.facts.replay is None or self.facts.replay["parallel"]

    @property
    def _held(self) -> Collection[str]:
        """Keys that nothing is attempted of now."""
        return self.busy.keys() | unkept if (unkept := self.kept.unkept) else self.busy

    def _replayed(self) -> None:
        """The replay has come to its end."""
        del self.lanes[REPLAY]
        self.facts.replay = None
        self.hub.changed(self)
        self.hub.hungry(self)

    # --- how far it is -----------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """See Lane."""
        return self.lanes[LIVE].cursor

    @property
    def pending(self) -> int:
        """How many events are on their way or wait for another attempt, those of replays and letters included."""
        return sum(map(len, self.lanes.values()))

    async def close(self, seconds: float = 0.0) -> None:
        """Starts nothing more, waits so long for attempts that run, and lets go of the sink."""
        self.closed = True
        self.pace.end()
        if seconds:
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                pass
        await self.access.close()

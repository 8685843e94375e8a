"""One subscription's deliveries: what is attempted when, and what follows from it.

A line belongs to the event loop of its deliverer. Its workers each take what is next, attempt it and go on until
nothing can be attempted now; a timer starts them again. Spec: 8.1 to 8.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from domain.roles import group_of
from projections.subscriptions.access import Access
from projections.subscriptions.attempt import LETTERS, LIVE, REPLAY, Attempt
from projections.subscriptions.bucket import UNVALIDATED, Bucket
from projections.subscriptions.consent import Consents
from projections.subscriptions.facts import DeadLetter, Facts, Saved
from projections.subscriptions.known import Change
from projections.subscriptions.lane import EVERYTHING, Entry, Lane
from projections.subscriptions.match import Family, Told
from projections.subscriptions.metrics import Metrics
from projections.subscriptions.plan import Plan
from projections.subscriptions.ports import Ports
from projections.subscriptions.sequence import parsed
from projections.subscriptions.state import Page, Stored

#: In what order they are served.
_TURNS: Final = (LETTERS, REPLAY, LIVE)
#: Requests at a time to sinks that take more than one.
WIDTH: Final = 32
#: Seconds to wait when something here has failed.
_PAUSE: Final = 1.0


class Hub(Protocol):
    """What a line needs of its deliverer."""

    @property
    def ports(self) -> Ports: ...
    @property
    def families(self) -> Sequence[Family]: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def may_send(self) -> bool:
        """Whether the lease holds and the deliverer goes on."""

    async def caught_up(self) -> None:
        """Returns when every change of a subscription that was answered by now is known to its line (SUB-833)."""

    async def again(self, sequences: Sequence[int]) -> Mapping[int, Told]:
        """Messages, read from the log once more."""

    def changed(self, line: Line) -> None:
        """Has a line's state written soon."""

    def hungry(self, line: Line) -> None:
        """Says that a line has room for more of the log, or is elsewhere in it than it was."""

    def failed(self, error: Exception) -> None:
        """Notes what should not have happened."""

    def start(self, work: Any) -> asyncio.Task[Any]:
        """Runs a coroutine as a task that is kept."""


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
        self.stored: Stored = {}
        self.busy: dict[str, None] = {}
        self._unkept: dict[str, None] = {}
        self._workers = 0
        self.closed = False
        self._timer: asyncio.Task[None] | None = None
        self._timed = 0.0
        self._failed_until = 0.0
        self._gathering: float | None = None
        self.letters: list[DeadLetter | int] = []
        self._idle = asyncio.Event()
        self._idle.set()
        if saved:
            self._restore(saved)
        self.subscription = newest
        self.plan = Plan.of(newest, hub.families)
        self.lanes.setdefault(LIVE, Lane(newest.starts - 1))
        self.access = Access(hub.ports, self.facts)
        self.consents = Consents(hub, self)
        for change in changes:
            self.take(change)

    def _restore(self, saved: Saved) -> None:
        self.lanes[LIVE] = Lane(saved.cursor, saved.facts.reach)
        if replay := saved.facts.replay:
            self.lanes[REPLAY] = Lane(replay["cursor"], replay["reach"], replay["to"])
        for number, pending in saved.pending.items():
            if number in self.lanes:
                self.lanes[number].restore(pending)
            self.stored |= {(number, each.sequence): each for each in pending}

    # --- what the log says -------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """Takes in the next event of its stream; one that was taken in before changes nothing."""
        subscription = change.subscription
        if subscription is None or change.revision <= self.revision:
            return
        self.subscription = subscription
        self.revision, self.position = change.revision, change.position
        if subscription.epoch != self.facts.epoch:
            self._updated()
        elif subscription.action:
            self._asked(subscription.action)
        self.hub.changed(self)
        self.pump()

    def _updated(self) -> None:
        """The owner has written the subscription: what stopped it may be mended."""
        facts, subscription = self.facts, self.subscription
        self.plan = Plan.of(subscription, self.hub.families)
        if facts.since != subscription.since:
            facts.since = subscription.since
            self.lanes[LIVE] = Lane(subscription.starts - 1)
        if facts.sink != self.plan.sink:
            facts.sink, facts.consent, facts.rate, facts.checked, facts.refusals = self.plan.sink, "", 0, 0.0, 0
            facts.bucket, facts.hold = None, 0.0
        facts.epoch = subscription.epoch
        facts.expires = 0.0
        self._go_on()
        for lane in self.lanes.values():
            lane.rewind()
        self.access.forget()
        self.hub.hungry(self)

    def _asked(self, action: Mapping[str, Any]) -> None:
        match action["name"]:
            case "resume":
                self._go_on()
            case "verify":
                self.consents.ask()
            case "replay":
                self._replay(action)
            case "redeliver":
                self._redeliver(parsed(str(action["sequence"])))
            case "discard":
                self.discard(parsed(str(action["sequence"])))

    def _go_on(self) -> None:
        facts = self.facts
        if facts.state in ("gone", "suspended"):
            facts.hold = 0.0
        facts.state, facts.dead, facts.failing = "", 0, 0.0

    def _replay(self, action: Mapping[str, Any]) -> None:
        first = int(action["from"])
        last = action.get("to")
        end = self.position if last is None else int(last)
        self.lanes[REPLAY] = Lane(first - 1, end=end)
        self.facts.replay = {"from": first, "to": end, "parallel": bool(action.get("parallel"))}
        self.hub.hungry(self)

    def _redeliver(self, sequence: int | None) -> None:
        """Gives a dead letter a fresh set of attempts, with no regard to the order of others."""
        if sequence is not None and sequence not in self.lanes[LETTERS]:
            self.lanes[LETTERS].add(Entry(sequence, f"#{sequence}"))

    def discard(self, sequence: int | None) -> None:
        """Forgets a dead letter; an attempt that runs may end."""
        if sequence is not None:
            self.lanes[LETTERS].discard(sequence)
            self.letters.append(sequence)

    # --- what the log brings -----------------------------------------------------------------------------------------

    def wants(self, number: int, told: Told) -> bool:
        """Whether an event of the log is for one of its lanes."""
        return self.plan.wants.matches(told, live=number == LIVE) and self.may_read(told.message.subject)

    def offer(self, number: int, told: Told) -> bool:
        """Takes in an event that it wants; whether there is room for more."""
        lane = self.lanes[number]
        lane.offer(told, self.plan.key(told), self.plan.position)
        return lane.has_room()

    @property
    def _is_parallel(self) -> bool:
        return self.facts.replay is None or self.facts.replay["parallel"]

    def may_read(self, subject: str) -> bool:
        """Whether the owner may read the subject of an event now (SUB-911)."""
        groups = self.subscription.groups
        if groups is not None and group_of(subject) not in groups:
            return False
        return self.hub.ports.reads(self.subscription.owner, subject)

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
            self._failed_until = self.now() + _PAUSE
        finally:
            self._workers -= 1
            if not self._workers:
                self._idle.set()
        self.pump()

    def _next(self) -> tuple[int, Lane, list[Entry]] | None:
        """What is to be attempted now; sets the timer where that is nothing yet."""
        now = self.now()
        if self.stopped or not self.hub.may_send or self._timed_until(self._shut_until(now)):
            return None
        for number in _TURNS:
            lane = self.lanes.get(number)
            if lane is None or (number == LIVE and not self._is_parallel):
                continue
            wakes = lane.due(now)
            if lane.ready and self._gathered(lane, now) and (entries := lane.take(self.plan.most, self._held)):
                self.busy |= dict.fromkeys(entry.key for entry in entries)
                self._spend(now)
                return number, lane, entries
            self._timed_until(wakes)
            if number == REPLAY and lane.has_ended:
                self._replayed()
        return None

    @property
    def _held(self) -> Collection[str]:
        """Keys that nothing is attempted of now."""
        return self.busy.keys() | self._unkept.keys() if self._unkept else self.busy

    def given_up(self, key: str) -> None:
        """Says that an event of a key never arrives: the next one waits until that is written (SUB-811).

        Else a crash would have the first one tried again, after those that it was to come before.
        """
        self._unkept[key] = None

    def _shut_until(self, now: float) -> float | None:
        """The time before which no request may be made; None where one may be made now."""
        if (until := max(self.facts.hold, self.access.until, self._failed_until)) > now:
            return until
        bucket = self._bucket(now)
        wait = bucket.wait(now) if bucket else 0.0
        return now + max(wait, 0.001) if wait > 0 else None

    def _bucket(self, now: float) -> Bucket | None:
        """What limits the rate of requests, with the level that it was left at."""
        if self.consents.unlimited:
            return None
        rate, most = (self.facts.rate, None) if self.facts.consent == "validated" else UNVALIDATED
        kept = self.facts.bucket
        return Bucket(*kept).like(rate, now, most) if kept else Bucket.of(rate, now, most)

    def _spend(self, now: float) -> None:
        if bucket := self._bucket(now):
            self.facts.bucket = list(bucket.taken(now))

    def _gathered(self, lane: Lane, now: float) -> bool:
        """Whether a batch is as large as it may be, or has been waited for as long as that takes."""
        if not self.plan.gather or lane.unsent >= self.plan.most:
            self._gathering = None
            return True
        if self._gathering is None:
            self._gathering = now + self.plan.gather
        if self._timed_until(self._gathering if self._gathering > now else None):
            return False
        self._gathering = None
        return True

    def _timed_until(self, until: float | None) -> bool:
        """Whether there is something to wait for; `pump` runs at the earliest of the times given."""
        if until is None:
            return False
        if until == float("inf"):
            return True  # somebody has to do something first
        if self._timer is None or self._timer.done() or until < self._timed:
            if self._timer is not None:
                self._timer.cancel()
            self._timed = until
            self._timer = self.hub.start(self._after(until))
        return True

    async def _after(self, until: float) -> None:
        while (left := until - self.now()) > 0:
            await self.hub.ports.time.sleep(left)
        self._timer = None
        self.pump()

    def wake_at(self, until: float | None) -> None:
        """Has `pump` run at a time."""
        self._timed_until(until)

    def _replayed(self) -> None:
        """The replay has come to its end."""
        del self.lanes[REPLAY]
        self.facts.replay = None
        self.hub.changed(self)
        self.hub.hungry(self)

    # --- what is kept ------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """See Lane."""
        return self.lanes[LIVE].cursor

    @property
    def pending(self) -> int:
        """How many events are on their way or wait for another attempt, those of replays and letters included."""
        return sum(map(len, self.lanes.values()))

    def page(self) -> Page:
        """What is to be written about it."""
        live, replay, facts = self.lanes[LIVE], self.lanes.get(REPLAY), self.facts
        now = self.now()
        facts.reach = live.reach
        facts.pending = self.pending
        facts.waiting = self.consents.awaited
        later = [at for lane in self.lanes.values() if (at := lane.next) is not None]
        facts.nextattempt = max(min(later, default=0.0), facts.hold if facts.hold > now else 0.0)
        if replay is not None and facts.replay:
            facts.replay |= {"cursor": replay.cursor, "reach": replay.reach}
        pending = {(number, each.sequence): each for number, lane in self.lanes.items() for each in lane.pending()}
        # An attempt that runs is a retry still, until it is known what became of it.
        waits = any(lane.retrying for lane in self.lanes.values())
        facts.retrying = waits or any(each.attempts for each in pending.values())
        callbacks = self.consents.callbacks
        dead, keys = tuple(self.letters), tuple(self._unkept)
        stored = self.stored
        return Page(
            self.id, self.revision, self.position, live.cursor, facts.json(), pending, stored, dead, callbacks, keys
        )

    def written(self, page: Page) -> None:
        """Says that a page is in the tables."""
        self.stored = page.pending
        del self.letters[: len(page.dead)]
        self.consents.written(len(page.callbacks))
        if page.keys:
            self._unkept = {key: None for key in self._unkept if key not in page.keys}
            self.pump()

    async def close(self, seconds: float = 0.0) -> None:
        """Starts nothing more, waits so long for attempts that run, and lets go of the sink."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        if seconds:
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                pass
        await self.access.close()

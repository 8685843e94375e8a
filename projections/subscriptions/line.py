"""One subscription's deliveries: what is attempted when, and what follows from it.

A line belongs to the event loop of its deliverer. Its workers each take what is next, attempt it and go on until
nothing can be attempted now; a timer starts them again. Spec: 8.1 to 8.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from domain.roles import group_of
from projections.subscriptions.access import Access
from projections.subscriptions.bucket import UNVALIDATED, Bucket
from projections.subscriptions.consent import Consents
from projections.subscriptions.contract import Outcome, Result
from projections.subscriptions.facts import DeadLetter, Facts, Saved
from projections.subscriptions.known import Change
from projections.subscriptions.lane import EVERYTHING, Entry, Lane
from projections.subscriptions.letters import send_letter
from projections.subscriptions.match import Family, Told
from projections.subscriptions.metrics import Metrics
from projections.subscriptions.plan import Plan
from projections.subscriptions.ports import Ports
from projections.subscriptions.retry import FAILING, MOST_DEAD, Next, verdict
from projections.subscriptions.sequence import parsed
from projections.subscriptions.state import Page, Stored

#: Lanes: as events come, replayed, dead letters that are tried again.
LIVE: Final = 0
REPLAY: Final = 1
LETTERS: Final = 2
#: In what order they are served.
_TURNS: Final = (LETTERS, REPLAY, LIVE)
#: Bytes of the events of one batch (SUB-706).
BATCH: Final = 1 << 20
#: Requests at a time to sinks that take more than one.
WIDTH: Final = 32
#: Characters of a sink's own words that are kept.
_WORDS: Final = 1024
#: Seconds beyond the time of an attempt that a sink has to notice by itself that it is up.
_GRACE: Final = 5.0
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
        self._hub = hub
        self._now = hub.ports.time.now
        self.id = newest.id
        self.facts = saved.facts if saved else Facts()
        self.revision = saved.revision if saved else 0
        self.position = saved.position if saved else 0
        self.lanes: dict[int, Lane] = {LETTERS: Lane(0, EVERYTHING, end=0)}
        self.stored: Stored = {}
        self._busy: dict[str, None] = {}
        self._workers = 0
        self._closed = False
        self._timer: asyncio.Task[None] | None = None
        self._timed = 0.0
        self._failed_until = 0.0
        self._gathering: float | None = None
        self._dead: list[DeadLetter | int] = []
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
        self._hub.changed(self)
        self.pump()

    def _updated(self) -> None:
        """The owner has written the subscription: what stopped it may be mended."""
        facts, subscription = self.facts, self.subscription
        self.plan = Plan.of(subscription, self._hub.families)
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
        self._hub.hungry(self)

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
        self._hub.hungry(self)

    def _redeliver(self, sequence: int | None) -> None:
        """Gives a dead letter a fresh set of attempts, with no regard to the order of others."""
        if sequence is not None and sequence not in self.lanes[LETTERS]:
            self.lanes[LETTERS].add(Entry(sequence, f"#{sequence}"))

    def discard(self, sequence: int | None) -> None:
        """Forgets a dead letter; an attempt that runs may end."""
        if sequence is not None:
            self.lanes[LETTERS].discard(sequence)
            self._dead.append(sequence)

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
        return self._hub.ports.reads(self.subscription.owner, subject)

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

    def pump(self) -> None:
        """Starts what can be started now, and sees to it that the rest is started when it can."""
        self.consents.see_to()
        while not self._closed and self._workers < self._width and (found := self._next()):
            self._workers += 1
            self._idle.clear()
            self._hub.start(self._work(*found))

    @property
    def _width(self) -> int:
        return 1 if self.plan.most > 1 else min(WIDTH, self.access.width)

    async def _work(self, number: int, lane: Lane, entries: list[Entry]) -> None:
        try:
            while True:
                await self._attempt(number, lane, entries)
                self._hub.changed(self)
                if lane.is_full and lane.has_room():
                    self._hub.hungry(self)
                if not (found := None if self._closed or self._workers > self._width else self._next()):
                    break
                number, lane, entries = found
        except Exception as error:
            # The store cannot be read now, or somebody's secrets cannot; what was taken is back in its lane.
            self._hub.failed(error)
            self._failed_until = self._now() + _PAUSE
        finally:
            self._workers -= 1
            if not self._workers:
                self._idle.set()
        self.pump()

    def _next(self) -> tuple[int, Lane, list[Entry]] | None:
        """What is to be attempted now; sets the timer where that is nothing yet."""
        now = self._now()
        if self.stopped or not self._hub.may_send or self._timed_until(self._closed_until(now)):
            return None
        for number in _TURNS:
            lane = self.lanes.get(number)
            if lane is None or (number == LIVE and not self._is_parallel):
                continue
            wakes = lane.due(now)
            if lane.ready and self._gathered(lane, now) and (entries := lane.take(self.plan.most, self._busy)):
                self._busy |= dict.fromkeys(entry.key for entry in entries)
                self._spend(now)
                return number, lane, entries
            self._timed_until(wakes)
            if number == REPLAY and lane.has_ended:
                self._replayed()
        return None

    def _closed_until(self, now: float) -> float | None:
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
            self._timer = self._hub.start(self._after(until))
        return True

    async def _after(self, until: float) -> None:
        while (left := until - self._now()) > 0:
            await self._hub.ports.time.sleep(left)
        self._timer = None
        self.pump()

    def wake_at(self, until: float | None) -> None:
        """Has `pump` run at a time."""
        self._timed_until(until)

    def _replayed(self) -> None:
        """The replay has come to its end."""
        del self.lanes[REPLAY]
        self.facts.replay = None
        self._hub.changed(self)
        self._hub.hungry(self)

    # --- an attempt --------------------------------------------------------------------------------------------------

    async def _attempt(self, number: int, lane: Lane, entries: list[Entry]) -> None:
        """Attempts events, as one request, and draws the conclusions for each of them."""
        left = {entry.sequence: entry for entry in entries}

        def leave(entry: Entry) -> None:
            del left[entry.sequence]
            self._busy.pop(entry.key, None)

        try:
            wanted = await self._prepared(number, lane, entries, leave)
            await self._tried(number, lane, wanted, leave)
        finally:
            for entry in left.values():
                lane.back(entry)
                self._busy.pop(entry.key, None)

    async def _prepared(self, number: int, lane: Lane, entries: list[Entry], leave: Any) -> list[Entry]:
        """Those of the events that are to be sent still, each with what there is to send."""
        missing = [entry.sequence for entry in entries if entry.told is None]
        found = await self._hub.again(missing) if missing else {}
        wanted: list[Entry] = []
        size = 0
        for entry in entries:
            entry.told = entry.told or found.get(entry.sequence)
            if entry.told is None or not self._is_wanted(number, entry, entry.told):
                leave(entry)
                lane.settle(entry)
                if number == LETTERS:
                    self._dead.append(entry.sequence)
                continue
            size += entry.told.size if self.plan.most > 1 else 0
            if size > BATCH and wanted:
                break
            wanted.append(entry)
        return wanted

    def _is_wanted(self, number: int, entry: Entry, told: Told) -> bool:
        """Whether the owner may read it now, and wants it under settings that are newer than its last match."""
        if not self.may_read(told.message.subject):
            return False
        if entry.first is not None or entry.under == self.plan.position or number == LETTERS:
            return True
        entry.under = self.plan.position
        return self.plan.wants.matches(told, live=number == LIVE)

    async def _tried(self, number: int, lane: Lane, entries: list[Entry], leave: Any) -> None:
        if not entries:
            return
        events = [entry.told.cloudevent() for entry in entries if entry.told]
        outcome = await self._sent(events, entries)
        if outcome is None:
            return
        if outcome.result is Result.REJECTED and len(entries) > 1:
            half = len(entries) // 2
            await self._tried(number, lane, entries[:half], leave)
            # Those whose turn has not come, because the one before them waits now, are left for later.
            waits = {entry.key for entry in entries[:half] if entry.sequence in lane}
            await self._tried(number, lane, [entry for entry in entries[half:] if entry.key not in waits], leave)
            return
        await self._concluded(number, lane, entries, outcome, leave)

    async def _sent(self, events: Sequence[Any], entries: Sequence[Entry]) -> Outcome | None:
        """The outcome of a request; None where it may not be made."""
        outcome = await self._once(events, entries)
        if outcome is not None and outcome.result is Result.UNAUTHORIZED and await self.access.renewed(self):
            return await self._once(events, entries)
        return outcome

    async def _once(self, events: Sequence[Any], entries: Sequence[Entry]) -> Outcome | None:
        plan = self.plan
        sink = await self.access.sink(self)
        if sink is None:
            return None
        await self._hub.caught_up()
        # From here to the sink nothing may be waited for: a pause that was answered is known by now.
        if self.stopped or self._closed or plan is not self.plan or not self._hub.may_send:
            return None
        now = self._now()
        self.facts.lastattempt = now
        for entry in entries:
            entry.first = entry.first or now
        try:
            async with asyncio.timeout(plan.seconds + _GRACE), self.access.using(sink):
                outcome = await sink.send(events)
        except TimeoutError:
            outcome = Outcome(Result.RETRY, "timeout", "the sink did not answer in time")
        except Exception as error:
            outcome = Outcome(Result.RETRY, "error", type(error).__name__)
        self._hub.metrics.attempted(self.id, outcome.result)
        return outcome

    # --- what follows ------------------------------------------------------------------------------------------------

    async def _concluded(self, number: int, lane: Lane, entries: list[Entry], outcome: Outcome, leave: Any) -> None:
        now = self._now()
        self._noted(outcome, now)
        for entry in entries:
            first = entry.first or now
            chance = self._hub.ports.time.chance()
            found = verdict(outcome, entry.attempts + 1, first, self.plan.retries, now, chance)
            entry.attempts += found.counts
            if found.next is Next.DEAD:
                await self._buried(number, entry, found.reason, outcome, first, now)
            if found.next is Next.SETTLED:
                self._arrived(number, entry, now)
            leave(entry)
            match found.next:
                case Next.SETTLED | Next.DEAD:
                    lane.settle(entry)
                case Next.AGAIN:
                    lane.again(entry, found.at)
                case Next.KEPT:
                    lane.back(entry)

    def _noted(self, outcome: Outcome, now: float) -> None:
        """What an outcome says about the sink as a whole."""
        facts = self.facts
        if outcome.result is Result.DELIVERED:
            facts.lastsuccess, facts.failing, facts.dead, facts.hold = now, 0.0, 0, 0.0
            if facts.state == "unauthorized":
                facts.state = ""
            return
        message = self.access.scrubbed(outcome.message)[:_WORDS]
        facts.lasterror = {"time": now, "code": outcome.code, "message": message}
        facts.failing = facts.failing or now
        if outcome.until is not None:
            facts.hold = max(facts.hold, outcome.until.timestamp())
        if outcome.result is Result.GONE:
            facts.state = "gone"
        elif outcome.result is Result.UNAUTHORIZED:
            facts.state = facts.state or "unauthorized"
        if now - facts.failing >= FAILING and facts.state in ("", "unauthorized"):
            facts.state = "suspended"

    def _arrived(self, number: int, entry: Entry, now: float) -> None:
        if number == LETTERS:
            self._dead.append(entry.sequence)
        elif number == LIVE and entry.told:
            committed = datetime.fromisoformat(entry.told.message.time).timestamp()
            self._hub.metrics.delivered(self.id, now - committed)

    async def _buried(self, number: int, entry: Entry, reason: str, outcome: Outcome, first: float, now: float) -> None:
        """Gives an event up, as the settings say: it is kept by reference, told to another sink, or dropped."""
        facts, where = self.facts, self.plan.deadletter
        self._hub.metrics.buried(self.id)
        stored = where == "store" or number == LETTERS
        if where not in ("store", "drop") and entry.told is not None:
            sent = await send_letter(
                self._hub.ports, self.plan, self.access.secrets, entry.told, reason, entry.attempts
            )
            stored = not sent
            if sent and number == LETTERS:
                self._dead.append(entry.sequence)
        if stored:
            message = self.access.scrubbed(outcome.message)[:_WORDS]
            self._dead.append(DeadLetter(entry.sequence, reason, outcome.code, message, entry.attempts, first, now))
        facts.dead += 1
        if facts.dead >= MOST_DEAD and facts.state in ("", "unauthorized"):
            facts.state = "suspended"

    # --- what is kept ------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> int:
        """See Lane."""
        return self.lanes[LIVE].cursor

    def page(self) -> Page:
        """What is to be written about it."""
        live, replay, facts = self.lanes[LIVE], self.lanes.get(REPLAY), self.facts
        now = self._now()
        facts.reach = live.reach
        facts.pending = sum(map(len, self.lanes.values()))
        facts.retrying = any(lane.retrying for lane in self.lanes.values())
        facts.waiting = self.consents.awaited
        later = [at for lane in self.lanes.values() if (at := lane.next) is not None]
        facts.nextattempt = max(min(later, default=0.0), facts.hold if facts.hold > now else 0.0)
        if replay is not None and facts.replay:
            facts.replay |= {"cursor": replay.cursor, "reach": replay.reach}
        pending = {(number, each.sequence): each for number, lane in self.lanes.items() for each in lane.pending()}
        callbacks = self.consents.callbacks
        dead = tuple(self._dead)
        return Page(
            self.id, self.revision, self.position, live.cursor, facts.json(), pending, self.stored, dead, callbacks
        )

    def written(self, page: Page) -> None:
        """Says that a page is in the tables."""
        self.stored = page.pending
        del self._dead[: len(page.dead)]
        self.consents.written(len(page.callbacks))

    async def close(self, seconds: float = 0.0) -> None:
        """Starts nothing more, waits so long for attempts that run, and lets go of the sink."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if seconds:
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                pass
        await self.access.close()

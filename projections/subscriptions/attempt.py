"""One attempt: events of one lane as one request, and what follows from its outcome for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from projections.subscriptions.contract import Outcome, Result
from projections.subscriptions.facts import DeadLetter
from projections.subscriptions.lane import Entry, Lane
from projections.subscriptions.letters import send_letter
from projections.subscriptions.match import Told
from projections.subscriptions.retry import FAILING, MOST_DEAD, Next, Verdict, verdict

if TYPE_CHECKING:
    from projections.subscriptions.line import Line

#: Lanes of a line: as events come, replayed, dead letters that are tried again.
LIVE: Final = 0
REPLAY: Final = 1
LETTERS: Final = 2

#: Bytes of the events of one batch (SUB-706).
BATCH: Final = 1 << 20
#: Characters of a sink's own words that are kept (SUB-823).
WORDS: Final = 1024
#: Seconds beyond the time of an attempt that a sink has to notice by itself that it is up.
_GRACE: Final = 5.0


class Attempt:
    """See the module. Events that it comes to no conclusion about are given back to their lane."""

    def __init__(self, line: Line, number: int, lane: Lane, entries: Sequence[Entry]) -> None:
        self._line = line
        self._number = number
        self._lane = lane
        self._left = {entry.sequence: entry for entry in entries}

    async def made(self) -> None:
        """Returns when each of the events is where it belongs. Raises: what reading the log may."""
        try:
            await self._tried(await self._prepared())
        finally:
            for entry in list(self._left.values()):
                self._leave(entry)
                self._lane.back(entry)

    def _leave(self, entry: Entry) -> None:
        del self._left[entry.sequence]
        self._line.busy.pop(entry.key, None)

    # --- before ------------------------------------------------------------------------------------------------------

    async def _prepared(self) -> list[Entry]:
        """Those of the events that are to be sent still, each with what there is to send."""
        await self._read_again()
        wanted: list[Entry] = []
        size = 0
        for entry in list(self._left.values()):
            if entry.told is None or not self._is_wanted(entry, entry.told):
                self._settle(entry)
                continue
            size += entry.told.size if self._line.plan.most > 1 else 0
            if size > BATCH and wanted:
                break
            wanted.append(entry)
        return wanted

    async def _read_again(self) -> None:
        """Fills in what there is to send, of those that follow their keys as well."""
        missing = {entry.sequence: entry for entry in self._left.values() if entry.told is None}
        if missing:
            for key in {entry.key for entry in missing.values()}:
                missing |= {entry.sequence: entry for entry in self._lane.unread(key)}
            found = await self._line.hub.again(list(missing))
            for sequence, entry in missing.items():
                entry.told = found.get(sequence)

    def _is_wanted(self, entry: Entry, told: Told) -> bool:
        """Whether the owner may read it now, and wants it under settings that are newer than its last match."""
        line, plan = self._line, self._line.plan
        if not line.may_read(told.message.xid):
            return False
        if entry.first is not None or entry.under == plan.position or self._number == LETTERS:
            return True
        entry.under = plan.position
        return plan.wants.matches(told, live=self._number == LIVE)

    # --- the request -------------------------------------------------------------------------------------------------

    async def _tried(self, entries: Sequence[Entry]) -> None:
        outcome = await self._sent(entries) if entries else None
        if outcome is None:
            return
        if outcome.result is not Result.REJECTED or len(entries) == 1:
            await self._concluded(entries, outcome)
            return
        half = len(entries) // 2
        await self._tried(entries[:half])
        # Those whose turn has not come, because one before them waits now, are left for later.
        waits = {entry.key for entry in entries[:half] if entry.sequence in self._lane}
        await self._tried([entry for entry in entries[half:] if entry.key not in waits])

    async def _sent(self, entries: Sequence[Entry]) -> Outcome | None:
        """The outcome of a request; None where it may not be made."""
        line = self._line
        outcome = await self._once(entries)
        if outcome is not None and outcome.result is Result.UNAUTHORIZED and await line.access.renewed(line):
            return await self._once(entries)
        return outcome

    async def _once(self, entries: Sequence[Entry]) -> Outcome | None:
        line, plan = self._line, self._line.plan
        sink = await line.access.sink(line)
        if sink is None:
            return None
        events = [entry.told.cloudevent() for entry in entries if entry.told]
        await line.hub.caught_up()
        # From here to the sink nothing may be waited for: a pause that was answered is known by now.
        if not line.may_start or plan is not line.plan:
            return None
        now = line.facts.lastattempt = line.now()
        for entry in entries:
            entry.first = entry.first or now
        try:
            async with asyncio.timeout(plan.seconds + _GRACE), line.access.using(sink):
                outcome = await sink.send(events)
        except TimeoutError:
            outcome = Outcome(Result.RETRY, "timeout", "the sink did not answer in time")
        except Exception as error:
            outcome = Outcome(Result.RETRY, "error", type(error).__name__)
        line.hub.metrics.attempted(line.id, outcome.result)
        return outcome

    # --- after -------------------------------------------------------------------------------------------------------

    async def _concluded(self, entries: Sequence[Entry], outcome: Outcome) -> None:
        line, now = self._line, self._line.now()
        self._noted(outcome, now)
        for entry in entries:
            chance = line.hub.ports.time.chance()
            first = entry.first or now
            found = verdict(outcome, entry.attempts + 1, first, line.plan.retries, now, chance)
            entry.attempts += found.counts
            await self._followed(entry, found, outcome, now)

    async def _followed(self, entry: Entry, found: Verdict, outcome: Outcome, now: float) -> None:
        line = self._line
        match found.next:
            case Next.SETTLED:
                self._arrived(entry, now)
                self._settle(entry)
            case Next.DEAD:
                await self._buried(entry, found.reason, outcome, now)
                line.kept.given_up(entry.key)
                self._leave(entry)
                self._lane.settle(entry)
            case Next.AGAIN:
                self._leave(entry)
                self._lane.again(entry, found.at)
            case Next.KEPT:
                self._leave(entry)
                self._lane.back(entry)

    def _settle(self, entry: Entry) -> None:
        """An event has arrived, or is not wanted; a dead letter that it was is none any more."""
        self._leave(entry)
        self._lane.settle(entry)
        if self._number == LETTERS:
            self._line.kept.letters.append(entry.sequence)

    def _noted(self, outcome: Outcome, now: float) -> None:
        """What an outcome says about the sink as a whole."""
        facts = self._line.facts
        if outcome.result is Result.DELIVERED:
            facts.lastsuccess, facts.failing, facts.dead, facts.stored = now, 0.0, 0, outcome.stored
            if facts.state == "unauthorized":
                facts.state = ""
            return
        facts.lasterror = {"time": now, "code": outcome.code, "message": self._words(outcome)}
        facts.failing = facts.failing or now
        if outcome.until is not None:
            facts.hold = max(facts.hold, outcome.until.timestamp())
        if outcome.result is Result.GONE:
            facts.state = "gone"
        elif outcome.result is Result.UNAUTHORIZED:
            facts.state = facts.state or "unauthorized"
        if now - facts.failing >= FAILING:
            self._suspend()

    def _arrived(self, entry: Entry, now: float) -> None:
        if self._number == LIVE and entry.told:
            committed = datetime.fromisoformat(entry.told.recorded).timestamp()
            self._line.hub.metrics.delivered(self._line.id, now - committed)

    async def _buried(self, entry: Entry, reason: str, outcome: Outcome, now: float) -> None:
        """Gives an event up, as the settings say: it is kept by reference, told to another sink, or dropped."""
        line, where = self._line, self._line.plan.deadletter
        line.hub.metrics.buried(line.id)
        told = where not in ("store", "drop") and entry.told is not None and await self._told(entry.told, reason, entry)
        if told and self._number == LETTERS:
            line.kept.letters.append(entry.sequence)
        elif not told and (where != "drop" or self._number == LETTERS):
            first, words = entry.first or now, self._words(outcome)
            line.kept.letters.append(
                DeadLetter(entry.sequence, reason, outcome.code, words, entry.attempts, first, now)
            )
        line.facts.dead += 1
        if line.facts.dead >= MOST_DEAD:
            self._suspend()

    async def _told(self, told: Told, reason: str, entry: Entry) -> bool:
        line = self._line
        return await send_letter(line.hub.ports, line.plan, line.access.secrets, told, reason, entry.attempts)

    def _suspend(self) -> None:
        """Stops until somebody says otherwise (SUB-822)."""
        if self._line.facts.state in ("", "unauthorized"):
            self._line.facts.state = "suspended"

    def _words(self, outcome: Outcome) -> str:
        return self._line.access.scrubbed(outcome.message)[:WORDS]

"""One attempt: sends events of one DeliveryQueue in one request and applies the outcome to each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from projections.subscriptions.contract import DeliveryResult, Outcome
from projections.subscriptions.decisions.delivery_queue import DeliveryQueue, QueuedEvent
from projections.subscriptions.decisions.delivery_state import DEAD_LETTERS, LIVE, DeliveryState
from projections.subscriptions.decisions.retry import NextStep, RetryDecision, decide_retry
from projections.subscriptions.decisions.sink_status import note_dead_letter, note_outcome
from projections.subscriptions.event_messages import EventMessage
from projections.subscriptions.state.delivery_record import DeadLetter
from projections.subscriptions.workers.dead_letter_sink import send_dead_letter
from projections.subscriptions.workers.deliverer_context import DelivererContext
from projections.subscriptions.workers.sink_manager import SinkManager

#: Largest size of a batch's events in bytes (SUB-706).
MAX_BATCH_BYTES: Final = 1 << 20
#: Largest stored length of a sink's message, in characters (SUB-823).
MAX_ERROR_LENGTH: Final = 1024
#: Seconds that a sink may exceed the time limit of an attempt before it is cancelled.
_GRACE: Final = 5.0


class Attempt:
    """One attempt. Events without a result return to their queue.

    may_start: whether a request may be sent now.
    number: the queue's number; an action may replace the queue during the attempt.
    """

    def __init__(
        self,
        hub: DelivererContext[Any],
        state: DeliveryState,
        access: SinkManager,
        may_start: Callable[[], bool],
        number: int,
        lane: DeliveryQueue,
        entries: Sequence[QueuedEvent],
    ) -> None:
        self._hub = hub
        self._state = state
        self._access = access
        self._may_start = may_start
        self._number = number
        self._lane = lane
        self._left = {entry.sequence: entry for entry in entries}

    async def made(self) -> None:
        """Runs the attempt until each event is settled, rescheduled or back in its queue.

        Raises: what reading the log may.
        """
        try:
            await self._tried(await self._prepared())
        finally:
            for entry in list(self._left.values()):
                self._leave(entry)
                self._lane.back(entry)

    def _leave(self, entry: QueuedEvent) -> None:
        del self._left[entry.sequence]
        self._state.busy.pop(entry.key, None)

    # --- before the request ------------------------------------------------------------------------------------------

    async def _prepared(self) -> list[QueuedEvent]:
        """The events that still have to be sent, with their messages."""
        await self._read_again()
        wanted: list[QueuedEvent] = []
        size = 0
        for entry in list(self._left.values()):
            if entry.told is None or not self._is_wanted(entry, entry.told):
                self._settle(entry)
                continue
            size += entry.told.size if self._state.plan.most > 1 else 0
            if size > MAX_BATCH_BYTES and wanted:
                break
            wanted.append(entry)
        return wanted

    async def _read_again(self) -> None:
        """Reads missing messages from the log, also those of the next events of the same keys."""
        missing = {entry.sequence: entry for entry in self._left.values() if entry.told is None}
        if missing:
            for key in {entry.key for entry in missing.values()}:
                missing |= {entry.sequence: entry for entry in self._lane.unread(key)}
            found = await self._hub.again(list(missing))
            for sequence, entry in missing.items():
                entry.told = found.get(sequence)

    def _is_wanted(self, entry: QueuedEvent, told: EventMessage) -> bool:
        """Whether the owner may read the event now and, if the settings changed since it matched, still wants it."""
        plan = self._state.plan
        if not self._state.may_read(told.message.xid, self._hub.ports.reads):
            return False
        if entry.first is not None or entry.under == plan.position or self._number == DEAD_LETTERS:
            return True
        entry.under = plan.position
        return plan.wants.matches(told, live=self._number == LIVE)

    # --- the request -------------------------------------------------------------------------------------------------

    async def _tried(self, entries: Sequence[QueuedEvent]) -> None:
        outcome = await self._sent(entries) if entries else None
        if outcome is None:
            return
        if outcome.result is not DeliveryResult.REJECTED or len(entries) == 1:
            await self._concluded(entries, outcome)
            return
        half = len(entries) // 2
        await self._tried(entries[:half])
        # Events whose key now waits for a retry are left for later.
        waits = {entry.key for entry in entries[:half] if entry.sequence in self._lane}
        await self._tried([entry for entry in entries[half:] if entry.key not in waits])

    async def _sent(self, entries: Sequence[QueuedEvent]) -> Outcome | None:
        """The outcome of a request; None if it may not be sent."""
        outcome = await self._once(entries)
        if outcome is not None and outcome.result is DeliveryResult.UNAUTHORIZED and await self._access.renewed():
            return await self._once(entries)
        return outcome

    async def _once(self, entries: Sequence[QueuedEvent]) -> Outcome | None:
        plan = self._state.plan
        sink = await self._access.sink()
        if sink is None:
            return None
        events = [entry.told.cloudevent() for entry in entries if entry.told]
        await self._hub.caught_up()
        # No `await` from here to the send, so that every pause that was answered is respected.
        if not self._may_start() or plan is not self._state.plan:
            return None
        now = self._state.facts.lastattempt = self._hub.ports.time.now()
        for entry in entries:
            entry.first = entry.first or now
        try:
            async with asyncio.timeout(plan.seconds + _GRACE), self._access.using(sink):
                outcome = await sink.send(events)
        except TimeoutError:
            outcome = Outcome(DeliveryResult.RETRY, "timeout", "the sink did not answer in time")
        except Exception as error:
            outcome = Outcome(DeliveryResult.RETRY, "error", type(error).__name__)
        self._hub.metrics.attempted(self._state.id, outcome.result)
        return outcome

    # --- after the request -------------------------------------------------------------------------------------------

    async def _concluded(self, entries: Sequence[QueuedEvent], outcome: Outcome) -> None:
        now = self._hub.ports.time.now()
        note_outcome(self._state.facts, outcome, self._words(outcome), now)
        for entry in entries:
            chance = self._hub.ports.time.chance()
            first = entry.first or now
            found = decide_retry(outcome, entry.attempts + 1, first, self._state.plan.retries, now, chance)
            entry.attempts += found.counts
            await self._followed(entry, found, outcome, now)

    async def _followed(self, entry: QueuedEvent, found: RetryDecision, outcome: Outcome, now: float) -> None:
        match found.next:
            case NextStep.SETTLED:
                self._arrived(entry, now)
                self._settle(entry)
            case NextStep.DEAD:
                await self._buried(entry, found.reason, outcome, now)
                self._state.give_up(entry.key)
                self._leave(entry)
                self._lane.settle(entry)
            case NextStep.AGAIN:
                self._leave(entry)
                self._lane.again(entry, found.at)
            case NextStep.KEPT:
                self._leave(entry)
                self._lane.back(entry)

    def _settle(self, entry: QueuedEvent) -> None:
        """Removes an event that was delivered or is not wanted. If it was a dead letter, deletes that."""
        self._leave(entry)
        self._lane.settle(entry)
        if self._number == DEAD_LETTERS:
            self._state.letters.append(entry.sequence)

    def _arrived(self, entry: QueuedEvent, now: float) -> None:
        if self._number == LIVE and entry.told:
            committed = datetime.fromisoformat(entry.told.recorded).timestamp()
            self._hub.metrics.delivered(self._state.id, now - committed)

    async def _buried(self, entry: QueuedEvent, reason: str, outcome: Outcome, now: float) -> None:
        """Gives an event up as the settings say: stores a reference, sends it to the dead letter sink, or drops it."""
        state, where = self._state, self._state.plan.deadletter
        self._hub.metrics.buried(state.id)
        told = where not in ("store", "drop") and entry.told is not None and await self._told(entry.told, reason, entry)
        if told and self._number == DEAD_LETTERS:
            state.letters.append(entry.sequence)
        elif not told and (where != "drop" or self._number == DEAD_LETTERS):
            first, words = entry.first or now, self._words(outcome)
            state.letters.append(DeadLetter(entry.sequence, reason, outcome.code, words, entry.attempts, first, now))
        note_dead_letter(state.facts)

    async def _told(self, told: EventMessage, reason: str, entry: QueuedEvent) -> bool:
        ports, plan = self._hub.ports, self._state.plan
        return await send_dead_letter(ports, plan, self._access.secrets, told, reason, entry.attempts)

    def _words(self, outcome: Outcome) -> str:
        return self._access.scrubbed(outcome.message)[:MAX_ERROR_LENGTH]

"""One attempt: sends events of one DeliveryQueue in one request and applies the outcome to each of them.

A rejected batch is halved, and a renewed token is used at once. The scheduler has to allow each of these requests; the
one that the attempt begins with was allowed when its events were taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from annals.projections.subscriptions.contract import DeliveryResult, Outcome, Sink
from annals.projections.subscriptions.decisions.delivery_queue import DEAD_LETTERS, LIVE, DeliveryQueue, QueuedEvent
from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.decisions.retry import NextStep, RetryDecision, decide_retry
from annals.projections.subscriptions.decisions.sink_status import note_dead_letter, note_outcome
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.state.delivery_record import DeadLetter
from annals.projections.subscriptions.workers.dead_letter_sink import send_dead_letter
from annals.projections.subscriptions.workers.deliverer_context import DelivererContext
from annals.projections.subscriptions.workers.request_scheduler import RequestScheduler
from annals.projections.subscriptions.workers.sink_manager import SinkManager

#: Largest size of a batch's events in bytes (SUB-706).
MAX_BATCH_BYTES: Final = 1 << 20
#: Seconds that a sink may exceed the time limit of an attempt before it is cancelled.
_GRACE_SECONDS: Final = 5.0


class Attempt:
    """One attempt. Events without a result return to their queue.

    may_start: whether a request may be sent now.
    number: the queue's number; an action may replace the queue during the attempt.
    """

    def __init__(
        self,
        context: DelivererContext[Any],
        state: DeliveryState,
        sink_manager: SinkManager,
        scheduler: RequestScheduler,
        may_start: Callable[[], bool],
        number: int,
        queue: DeliveryQueue,
        entries: Sequence[QueuedEvent],
    ) -> None:
        self._context = context
        self._state = state
        self._sink_manager = sink_manager
        self._scheduler = scheduler
        self._may_start = may_start
        self._number = number
        self._queue = queue
        self._remaining = {entry.sequence: entry for entry in entries}
        #: The token of the last request.
        self._token = ""
        #: When the last request began and ended, in seconds since 1970.
        self._request_times = (0.0, 0.0)

    async def run(self) -> None:
        """Runs the attempt until each event is settled, rescheduled or back in its queue.

        Raises: what reading the log may.
        """
        try:
            size = self._state.batch_size
            entries = await self._prepare()
            if entries and await self._try_entries(entries):
                self._state.limit_batches(2 * size)  # no request had to wait, so the next may be larger again
        finally:
            for entry in list(self._remaining.values()):
                self._finish(entry)
                self._queue.put_back(entry)

    def _finish(self, entry: QueuedEvent) -> None:
        del self._remaining[entry.sequence]
        self._state.busy_keys.pop(entry.key, None)

    # --- before the request ------------------------------------------------------------------------------------------

    async def _prepare(self) -> list[QueuedEvent]:
        """The events that still have to be sent, with their messages."""
        await self._read_again()
        entries_to_send: list[QueuedEvent] = []
        size = 0
        for entry in list(self._remaining.values()):
            if entry.event is None or not self._is_wanted(entry, entry.event):
                self._settle(entry)
                continue
            size += entry.event.size if self._state.plan.batch_size > 1 else 0
            if size > MAX_BATCH_BYTES and entries_to_send:
                break
            entries_to_send.append(entry)
        return entries_to_send

    async def _read_again(self) -> None:
        """Reads missing messages from the log, also those of the next events of the same keys."""
        missing = {entry.sequence: entry for entry in self._remaining.values() if entry.event is None}
        if missing:
            for key in {entry.key for entry in missing.values()}:
                missing |= {entry.sequence: entry for entry in self._queue.unread_events(key)}
            events = await self._context.read_again(list(missing))
            for sequence, entry in missing.items():
                entry.event = events.get(sequence)

    def _is_wanted(self, entry: QueuedEvent, event: EventMessage) -> bool:
        """Whether the owner may read the event now and, if the settings changed since it matched, still wants it."""
        plan = self._state.plan
        if not self._may_read(entry):
            return False
        if entry.first_attempt is not None or entry.settings_position == plan.position or self._number == DEAD_LETTERS:
            return True
        entry.settings_position = plan.position
        return plan.event_filter.matches(event, live=self._number == LIVE)

    def _may_read(self, entry: QueuedEvent) -> bool:
        """Whether the owner may read an event now (SUB-911)."""
        return entry.event is None or self._context.ports.may_read(self._state.subscription, entry.event.message.xid)

    # --- the request -------------------------------------------------------------------------------------------------

    async def _try_entries(self, entries: Sequence[QueuedEvent]) -> bool:
        """Sends events in one request, and in halves if the sink rejects several. Returns whether each was sent."""
        outcome = await self._send_with_renewal(entries)
        if outcome is None:
            return False
        if outcome.result is not DeliveryResult.REJECTED or len(entries) == 1:
            await self._apply_outcome(entries, outcome)
            return True
        self._record_attempts(entries, outcome)
        half = len(entries) // 2
        # If the halves have to wait, they are not sent together again.
        self._state.limit_batches(half)
        if not self._take_request() or not await self._try_entries(entries[:half]):
            return False
        # Events whose key now waits for a retry are left for later.
        retrying_keys = {entry.key for entry in entries[:half] if entry.sequence in self._queue}
        rest = [entry for entry in entries[half:] if entry.key not in retrying_keys]
        return not rest or (self._take_request() and await self._try_entries(rest))

    def _take_request(self) -> bool:
        """Whether another request may be sent now, which is then counted (SUB-713)."""
        return self._scheduler.take_request(self._context.ports.clock.now(), self._sink_manager.retry_at)

    async def _send_with_renewal(self, entries: Sequence[QueuedEvent]) -> Outcome | None:
        """The outcome of a request; None if it may not be sent or does not count."""
        plan = self._state.plan
        outcome = await self._send_once(entries)
        if (
            outcome is not None
            and outcome.result is DeliveryResult.UNAUTHORIZED
            and await self._sink_manager.renew_token(self._token)
            and self._take_request()
        ):
            self._record_attempts(entries, outcome)
            outcome = await self._send_once(entries)
        if outcome is not None and outcome.result is not DeliveryResult.DELIVERED and plan is not self._state.plan:
            # It says nothing about the settings that the owner has written meanwhile. The events are sent with those.
            self._record_attempts(entries, outcome)
            return None
        return outcome

    async def _send_once(self, entries: Sequence[QueuedEvent]) -> Outcome | None:
        plan = self._state.plan
        sink = await self._sink_manager.sink()
        if sink is None:
            return None
        self._token = self._sink_manager.token
        async with self._sink_manager.using(sink):
            await self._context.catch_up()
            # No `await` from here to the send, so that every pause that was answered is respected.
            if not self._may_start() or plan is not self._state.plan or not all(map(self._may_read, entries)):
                return None
            return await self._request(sink, plan.timeout, entries)

    async def _request(self, sink: Sink, timeout: float, entries: Sequence[QueuedEvent]) -> Outcome:
        events = [entry.event.cloudevent() for entry in entries if entry.event]
        now = self._state.record.lastattempt = self._context.ports.clock.now()
        for entry in entries:
            self._queue.begin_attempt(entry, now)
        try:
            async with asyncio.timeout(timeout + _GRACE_SECONDS):
                outcome = await sink.send(events)
        except TimeoutError:
            outcome = Outcome(DeliveryResult.RETRY, "timeout", "the sink did not answer in time")
        except Exception as error:
            outcome = Outcome(DeliveryResult.RETRY, "error", type(error).__name__)
        self._request_times = (now, self._context.ports.clock.now())
        self._context.metrics.count_attempt(self._state.id, outcome.result)
        return outcome

    def _record_attempts(
        self, entries: Sequence[QueuedEvent], outcome: Outcome, next_attempt: float | None = None
    ) -> None:
        """Records what became of the last request, for each of its events (UI-111)."""
        for entry in entries:
            self._state.attempts.add(
                entry.sequence, outcome.result.value, outcome.code, *self._request_times, next_attempt
            )

    # --- after the request -------------------------------------------------------------------------------------------

    async def _apply_outcome(self, entries: Sequence[QueuedEvent], outcome: Outcome) -> None:
        plan, now = self._state.plan, self._context.ports.clock.now()
        note_outcome(self._state.record, outcome, self._error_text(outcome), now)
        for entry in entries:
            if plan is not self._state.plan:
                return  # it changed while a dead letter was sent; see `_send_with_renewal`
            random_fraction = self._context.ports.clock.random_fraction()
            first_attempt = entry.first_attempt or now
            decision = decide_retry(outcome, entry.attempts + 1, first_attempt, plan.retry_policy, now, random_fraction)
            if decision.counts_as_attempt:
                self._queue.count_attempt(entry)
            next_attempt = decision.time if decision.next_step is NextStep.RETRY else None
            self._record_attempts([entry], outcome, next_attempt)
            await self._apply_decision(entry, decision, outcome, now)

    async def _apply_decision(self, entry: QueuedEvent, decision: RetryDecision, outcome: Outcome, now: float) -> None:
        match decision.next_step:
            case NextStep.COMPLETE:
                self._observe_delivery(entry, now)
                self._settle(entry)
            case NextStep.DEAD_LETTER:
                await self._give_up(entry, decision.reason, outcome, now)
                self._state.block_key(entry.key)
                self._finish(entry)
                self._queue.complete(entry)
            case NextStep.RETRY:
                self._finish(entry)
                self._queue.schedule_retry(entry, decision.time)
            case NextStep.WAIT:
                self._finish(entry)
                self._queue.put_back(entry)

    def _settle(self, entry: QueuedEvent) -> None:
        """Removes an event that was delivered or is not wanted. If it was a dead letter, deletes that."""
        self._finish(entry)
        self._queue.complete(entry)
        if self._number == DEAD_LETTERS:
            self._state.dead_letters.append(entry.sequence)

    def _observe_delivery(self, entry: QueuedEvent, now: float) -> None:
        if self._number == LIVE and entry.event:
            committed_at = datetime.fromisoformat(entry.event.committed_at).timestamp()
            self._context.metrics.observe_delivery(self._state.id, now - committed_at)

    async def _give_up(self, entry: QueuedEvent, reason: str, outcome: Outcome, now: float) -> None:
        """Gives an event up as the settings say: stores a reference, sends it to the dead letter sink, or drops it."""
        state, destination = self._state, self._state.plan.deadletter
        self._context.metrics.count_dead_letter(state.id)
        is_sent = (
            destination not in ("store", "drop")
            and entry.event is not None
            and await self._send_dead_letter(entry.event, reason, entry)
        )
        if is_sent and self._number == DEAD_LETTERS:
            state.dead_letters.append(entry.sequence)
        elif not is_sent and (destination != "drop" or self._number == DEAD_LETTERS):
            first_attempt, message = entry.first_attempt or now, self._error_text(outcome)
            state.dead_letters.append(
                DeadLetter(entry.sequence, reason, outcome.code, message, entry.attempts, first_attempt, now)
            )
        note_dead_letter(state.record)

    async def _send_dead_letter(self, event: EventMessage, reason: str, entry: QueuedEvent) -> bool:
        ports, plan = self._context.ports, self._state.plan
        return await send_dead_letter(ports, plan, self._sink_manager.secrets, event, reason, entry.attempts)

    def _error_text(self, outcome: Outcome) -> str:
        return self._sink_manager.scrub(outcome.message)

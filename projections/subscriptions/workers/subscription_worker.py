"""The worker of one subscription: it starts attempts when they may run, and applies their results.

It belongs to the event loop of its deliverer. Each of its tasks takes the next events, attempts them, and goes on until
nothing can be attempted; a timer starts them again. Spec: 8.1 to 8.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from annals.projections.subscriptions.decisions.control_actions import Effect, apply_change
from annals.projections.subscriptions.decisions.delivery_queue import (
    DEAD_LETTERS,
    LIVE,
    REPLAY,
    DeliveryQueue,
    QueuedEvent,
)
from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.state.delivery_queries import StateUpdate
from annals.projections.subscriptions.state.delivery_record import SavedDelivery
from annals.projections.subscriptions.state.subscription_changes import SubscriptionChange
from annals.projections.subscriptions.workers.attempt import Attempt
from annals.projections.subscriptions.workers.consent_checker import ConsentChecker
from annals.projections.subscriptions.workers.deliverer_context import DelivererContext
from annals.projections.subscriptions.workers.request_scheduler import RequestScheduler
from annals.projections.subscriptions.workers.sink_manager import SinkManager

#: The order in which queues are served.
_QUEUE_ORDER: Final = (DEAD_LETTERS, REPLAY, LIVE)
#: Largest number of concurrent requests to a sink that accepts several.
MAX_CONCURRENCY: Final = 32


class SubscriptionWorker:
    """The worker of one subscription.

    changes: the events of its stream after the stored state, in order; at least the last event of all.
    saved: the stored state.
    """

    def __init__(
        self, context: DelivererContext[Any], changes: Sequence[SubscriptionChange], saved: SavedDelivery | None
    ) -> None:
        subscription = changes[-1].subscription
        assert subscription is not None
        ports = context.ports
        self.id = subscription.id
        self.state = DeliveryState(subscription, context.families, saved, ports.policy if ports.validator else "off")
        self.is_closed = False
        self._context = context
        self._now = ports.clock.now
        self._active_count = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._sink_manager = SinkManager(ports, self.state)
        self._scheduler = RequestScheduler(context, self.state, self.start_attempts)
        self._consent_checker = ConsentChecker(
            context, self.state, self._sink_manager, self._scheduler, self._save, self._on_consent
        )
        for change in changes:
            self.apply_change(change)

    def _save(self) -> None:
        self._context.save_soon(self)

    def _on_consent(self) -> None:
        self._context.read_more(self)
        self.start_attempts()

    # --- events of the log -------------------------------------------------------------------------------------------

    def apply_change(self, change: SubscriptionChange) -> None:
        """Applies the next event of its stream. An event that was applied before changes nothing."""
        effect = apply_change(self.state, change)
        if effect is None:
            return
        if Effect.REOPEN_SINK in effect:
            self._sink_manager.reset()
        if Effect.REQUEST_CONSENT in effect:
            self._consent_checker.request_check()
        if Effect.READ_LOG in effect:
            self._context.read_more(self)
        self._save()
        self.start_attempts()

    def grant(self, sink_hash: str, rate: int | None) -> None:
        """Records a consent through a callback; see ConsentChecker."""
        self._consent_checker.grant(sink_hash, rate)

    def matches(self, number: int, event: EventMessage) -> bool:
        """Whether an event of the log belongs into one of its queues."""
        is_match = self.state.plan.event_filter.matches(event, live=number == LIVE)
        return is_match and self._context.ports.may_read(self.state.subscription, event.message.xid)

    # --- attempts ----------------------------------------------------------------------------------------------------

    def may_start(self) -> bool:
        """Whether the subscription and the lease allow a request now."""
        return not (self.state.stop_reason or self.is_closed) and self._context.may_send

    def start_attempts(self) -> None:
        """Starts every attempt that can start now, and schedules the others."""
        if self.is_closed:
            return  # a check for consent, or a timer for one, would outlive the worker
        self._consent_checker.check_if_due()
        while self._active_count < self._concurrency and (next_entries := self._take_next()):
            self._active_count += 1
            self._idle.clear()
            self._context.start_task(self._run_attempts(*next_entries))

    @property
    def _concurrency(self) -> int:
        return 1 if self.state.plan.batch_size > 1 else min(MAX_CONCURRENCY, self._sink_manager.concurrency)

    async def _run_attempts(self, number: int, queue: DeliveryQueue, entries: list[QueuedEvent]) -> None:
        try:
            while True:
                await self._attempt(number, queue, entries).run()
                self._context.save_soon(self)
                if queue.is_full and queue.has_room():
                    self._context.read_more(self)
                if not (
                    next_entries := None
                    if self.is_closed or self._active_count > self._concurrency
                    else self._take_next()
                ):
                    break
                number, queue, entries = next_entries
        except Exception as error:
            # The store or the secrets cannot be read now. The events are back in their queue.
            self._context.log_failure(error)
            self._scheduler.pause_after_failure(self._now())
        finally:
            self._active_count -= 1
            if not self._active_count:
                self._idle.set()
        self.start_attempts()

    def _attempt(self, number: int, queue: DeliveryQueue, entries: list[QueuedEvent]) -> Attempt:
        return Attempt(
            self._context, self.state, self._sink_manager, self._scheduler, self.may_start, number, queue, entries
        )

    def _take_next(self) -> tuple[int, DeliveryQueue, list[QueuedEvent]] | None:
        """The next events to attempt. If there are none yet, sets the timer."""
        state, now = self.state, self._now()
        if (
            state.stop_reason
            or not self._context.may_send
            or self._scheduler.wake_at(self._scheduler.blocked_until(now, self._sink_manager.retry_at))
        ):
            return None
        for number in _QUEUE_ORDER:
            queue = state.queues.get(number)
            if queue is None or (number == LIVE and not state.is_parallel):
                continue
            next_retry = queue.release_due(now)
            if (
                queue.is_ready
                and self._scheduler.is_batch_ready(queue, now)
                and (entries := queue.take_events(state.batch_size, state.blocked_keys))
            ):
                state.busy_keys |= dict.fromkeys(entry.key for entry in entries)
                self._scheduler.count_request(now)
                return number, queue, entries
            self._scheduler.wake_at(next_retry)
            if number == REPLAY and queue.has_ended:
                self._end_replay()
        return None

    def _end_replay(self) -> None:
        self.state.end_replay()
        self._save()
        self._context.read_more(self)

    # --- state -------------------------------------------------------------------------------------------------------

    def state_update(self) -> StateUpdate:
        """The changes to write to the tables."""
        return self.state.state_update(self._now())

    def mark_written(self, update: StateUpdate) -> None:
        """Records that an update is in the tables."""
        if self.state.mark_written(update):
            self.start_attempts()

    def stop(self) -> None:
        """Starts no more attempts from now on."""
        self.is_closed = True
        self._scheduler.cancel()

    async def close(self, timeout: float = 0.0) -> None:
        """Starts no more attempts, waits for running ones up to the time limit, and closes the sink."""
        self.stop()
        if timeout:
            try:
                async with asyncio.timeout(timeout):
                    await self.wait_until_idle()
            except TimeoutError:
                pass
        await self._sink_manager.close()

    async def wait_until_idle(self) -> None:
        """Returns when no attempt is running."""
        await self._idle.wait()

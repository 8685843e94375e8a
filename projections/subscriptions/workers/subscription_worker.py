"""The worker of one subscription: it starts attempts when they may run, and applies their results.

It belongs to the event loop of its deliverer. Each of its tasks takes the next events, attempts them, and goes on until
nothing can be attempted; a timer starts them again. Spec: 8.1 to 8.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from projections.subscriptions.decisions.control_actions import Effect, apply_change
from projections.subscriptions.decisions.delivery_queue import DeliveryQueue, QueuedEvent
from projections.subscriptions.decisions.delivery_state import DEAD_LETTERS, LIVE, REPLAY, DeliveryState
from projections.subscriptions.event_messages import EventMessage
from projections.subscriptions.state.delivery_queries import StateUpdate
from projections.subscriptions.state.delivery_record import SavedDelivery
from projections.subscriptions.state.subscription_changes import SubscriptionChange
from projections.subscriptions.workers.attempt import Attempt
from projections.subscriptions.workers.consent_checker import ConsentChecker
from projections.subscriptions.workers.deliverer_context import DelivererContext
from projections.subscriptions.workers.request_scheduler import RequestScheduler
from projections.subscriptions.workers.sink_manager import SinkManager

#: The order in which queues are served.
_QUEUE_ORDER: Final = (DEAD_LETTERS, REPLAY, LIVE)
#: Largest number of concurrent requests to a sink that accepts several.
MAX_CONCURRENCY: Final = 32


class SubscriptionWorker:
    """The worker of one subscription.

    saved: its stored state.
    changes: later events of its stream, in order.
    """

    def __init__(
        self, hub: DelivererContext[Any], changes: Sequence[SubscriptionChange], saved: SavedDelivery | None
    ) -> None:
        newest = changes[-1].subscription
        assert newest is not None
        ports = hub.ports
        self.id = newest.id
        self.state = DeliveryState(newest, hub.families, saved, ports.policy if ports.validator else "off")
        self.closed = False
        self._hub = hub
        self._now = ports.time.now
        self._workers = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._access = SinkManager(ports, self.state)
        self._pace = RequestScheduler(hub, self.state, self.pump)
        self._consents = ConsentChecker(hub, self.state, self._access, self._pace, self._save, self._consented)
        for change in changes:
            self.take(change)

    def _save(self) -> None:
        self._hub.changed(self)

    def _consented(self) -> None:
        self._hub.hungry(self)
        self.pump()

    # --- events of the log -------------------------------------------------------------------------------------------

    def take(self, change: SubscriptionChange) -> None:
        """Applies the next event of its stream. An event that was applied before changes nothing."""
        effect = apply_change(self.state, change)
        if effect is None:
            return
        if Effect.REOPEN_SINK in effect:
            self._access.forget()
        if Effect.ASK_CONSENT in effect:
            self._consents.ask()
        if Effect.READ_LOG in effect:
            self._hub.hungry(self)
        self._save()
        self.pump()

    def grant(self, rate: int | None) -> None:
        """Records a consent through a callback; see ConsentChecker."""
        self._consents.grant(rate)

    def wants(self, number: int, told: EventMessage) -> bool:
        """Whether an event of the log belongs into one of its queues."""
        matches = self.state.plan.wants.matches(told, live=number == LIVE)
        return matches and self.state.may_read(told.message.xid, self._hub.ports.reads)

    # --- attempts ----------------------------------------------------------------------------------------------------

    def may_start(self) -> bool:
        """Whether the subscription and the lease allow a request now."""
        return not (self.state.stopped or self.closed) and self._hub.may_send

    def pump(self) -> None:
        """Starts every attempt that can start now, and schedules the others."""
        self._consents.see_to()
        while not self.closed and self._workers < self._width and (found := self._next()):
            self._workers += 1
            self._idle.clear()
            self._hub.start(self._work(*found))

    @property
    def _width(self) -> int:
        return 1 if self.state.plan.most > 1 else min(MAX_CONCURRENCY, self._access.width)

    async def _work(self, number: int, lane: DeliveryQueue, entries: list[QueuedEvent]) -> None:
        try:
            while True:
                await self._attempt(number, lane, entries).made()
                self._hub.changed(self)
                if lane.is_full and lane.has_room():
                    self._hub.hungry(self)
                if not (found := None if self.closed or self._workers > self._width else self._next()):
                    break
                number, lane, entries = found
        except Exception as error:
            # The store or the secrets cannot be read now. The events are back in their queue.
            self._hub.failed(error)
            self._pace.failed(self._now())
        finally:
            self._workers -= 1
            if not self._workers:
                self._idle.set()
        self.pump()

    def _attempt(self, number: int, lane: DeliveryQueue, entries: list[QueuedEvent]) -> Attempt:
        return Attempt(self._hub, self.state, self._access, self.may_start, number, lane, entries)

    def _next(self) -> tuple[int, DeliveryQueue, list[QueuedEvent]] | None:
        """The next events to attempt. If there are none yet, sets the timer."""
        state, now = self.state, self._now()
        if state.stopped or not self._hub.may_send or self._pace.wait(self._pace.shut_until(now, self._access.until)):
            return None
        for number in _QUEUE_ORDER:
            lane = state.lanes.get(number)
            if lane is None or (number == LIVE and not state.is_parallel):
                continue
            wakes, most = lane.due(now), state.plan.most
            if lane.ready and self._pace.gathered(lane, now) and (entries := lane.take(most, state.blocked_keys)):
                state.busy |= dict.fromkeys(entry.key for entry in entries)
                self._pace.spend(now)
                return number, lane, entries
            self._pace.wait(wakes)
            if number == REPLAY and lane.has_ended:
                self._end_replay()
        return None

    def _end_replay(self) -> None:
        self.state.end_replay()
        self._save()
        self._hub.hungry(self)

    # --- state -------------------------------------------------------------------------------------------------------

    def page(self) -> StateUpdate:
        """The changes to write to the tables."""
        return self.state.page(self._now())

    def mark_written(self, page: StateUpdate) -> None:
        """Records that an update is in the tables."""
        if self.state.mark_written(page):
            self.pump()

    async def close(self, seconds: float = 0.0) -> None:
        """Starts no more attempts, waits for running ones up to the time limit, and closes the sink."""
        self.closed = True
        self._pace.end()
        if seconds:
            try:
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
            except TimeoutError:
                pass
        await self._access.close()

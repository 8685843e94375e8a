"""Decides when the next request of a subscription may be sent, and wakes its worker then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from annals.projections.subscriptions.decisions.delivery_queue import DeliveryQueue
from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.decisions.token_bucket import UNVALIDATED_LIMIT, TokenBucket
from annals.projections.subscriptions.workers.deliverer_context import DelivererContext

#: Seconds to wait after an internal failure.
_FAILURE_PAUSE_SECONDS: Final = 1.0


class RequestScheduler:
    """The schedule of one subscription's requests. Times are seconds since 1970.

    wake: starts whatever can start now.
    """

    def __init__(self, context: DelivererContext[Any], state: DeliveryState, wake: Callable[[], None]) -> None:
        self._context = context
        self._state = state
        self._wake = wake
        self._timer: asyncio.Task[None] | None = None
        self._timer_due = 0.0
        self._failed_until = 0.0
        self._batch_since: float | None = None

    def blocked_until(self, now: float, sink_retry_at: float) -> float | None:
        """The time before which no request may be sent; None if one may be sent now.

        sink_retry_at: time before which the sink is unusable.
        """
        if (blocked_until := max(self._state.record.hold, sink_retry_at, self._failed_until)) > now:
            return blocked_until
        bucket = self._bucket(now)
        wait = bucket.seconds_until_token(now) if bucket else 0.0
        return now + max(wait, 0.001) if wait > 0 else None

    def take_request(self, now: float, sink_retry_at: float) -> bool:
        """Whether a request may be sent now, as `blocked_until` says. If so, counts it."""
        if self.blocked_until(now, sink_retry_at) is not None:
            return False
        self.count_request(now)
        return True

    def count_request(self, now: float) -> None:
        """Takes a token for a request."""
        if bucket := self._bucket(now):
            self._state.record.bucket = list(bucket.without_token(now))

    def pause_after_failure(self, now: float) -> None:
        """Pauses requests after an internal failure."""
        self._failed_until = now + _FAILURE_PAUSE_SECONDS

    def is_batch_ready(self, queue: DeliveryQueue, now: float) -> bool:
        """Whether a batch is full, or has waited for its maximum time."""
        plan = self._state.plan
        if not plan.batch_wait or queue.unsent >= self._state.batch_size:
            self._batch_since = None
            return True
        if self._batch_since is None:
            self._batch_since = now + plan.batch_wait
        if self.wake_at(self._batch_since if self._batch_since > now else None):
            return False
        self._batch_since = None
        return True

    def wake_at(self, wake_at: float | None) -> bool:
        """Whether there is something to wait for. `wake` runs at the earliest of the times passed so far."""
        if wake_at is None:
            return False
        if wake_at == float("inf"):
            return True  # the wait ends only by an action of the owner
        if self._timer is None or self._timer.done() or wake_at < self._timer_due:
            self.cancel()
            self._timer_due = wake_at
            self._timer = self._context.start_task(self._wake_after(wake_at))
        return True

    def cancel(self) -> None:
        """Cancels the timer."""
        if self._timer is not None:
            self._timer.cancel()

    async def _wake_after(self, wake_at: float) -> None:
        clock = self._context.ports.clock
        while (remaining := wake_at - clock.now()) > 0:
            await clock.sleep(remaining)
        self._timer = None
        self._wake()

    def _bucket(self, now: float) -> TokenBucket | None:
        """The bucket that limits requests, at its last level; None if they are unlimited."""
        record = self._state.record
        if self._state.is_unlimited:
            return None
        rate, capacity = (record.rate, None) if record.consent == "validated" else UNVALIDATED_LIMIT
        return (
            TokenBucket(*record.bucket).with_rate(rate, now, capacity)
            if record.bucket
            else TokenBucket.full(rate, now, capacity)
        )

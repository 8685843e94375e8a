"""The consent of a sink: when to request it, and what the sink's answer allows (SUB-711 to 714)."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final

from annals.projections.subscriptions.decisions.delivery_plan import DeliveryPlan
from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.decisions.retry import RetryPolicy
from annals.projections.subscriptions.decisions.sink_status import note_consent
from annals.projections.subscriptions.ports import SinkConsent
from annals.projections.subscriptions.transport.webhook_handshake import HandshakeResult
from annals.projections.subscriptions.workers.deliverer_context import DelivererContext
from annals.projections.subscriptions.workers.request_scheduler import RequestScheduler
from annals.projections.subscriptions.workers.sink_manager import SinkManager

#: Seconds between two requests for consent that are answered, and lifetime of a callback secret.
CHECK_SECONDS: Final = 86400.0
#: When a request without an answer is repeated.
_REPETITION: Final = RetryPolicy()


class ConsentChecker:
    """The consent of one subscription's sink.

    save: schedules a write of the state.
    on_answer: called when an answer has arrived.
    """

    def __init__(
        self,
        context: DelivererContext[Any],
        state: DeliveryState,
        sink_manager: SinkManager,
        scheduler: RequestScheduler,
        save: Callable[[], None],
        on_answer: Callable[[], None],
    ) -> None:
        self._context = context
        self._state = state
        self._sink_manager = sink_manager
        self._scheduler = scheduler
        self._save = save
        self._on_answer = on_answer
        self._is_checking = False
        self._is_requested = False
        #: Requests since the last answer, and the time of the next one; 0 if the last one was answered.
        self._unanswered_count, self._repeat_at = 0, 0.0

    def request_check(self) -> None:
        """Requests a handshake soon."""
        self._is_requested = True

    def check_if_due(self) -> None:
        """Starts a handshake if one is due."""
        if not self._state.needs_consent_request or self._is_checking:
            return
        record, now = self._state.record, self._context.ports.clock.now()
        if not record.consent:
            self._unanswered_count, self._repeat_at = 0, 0.0  # it is a new sink
        next_check = self._repeat_at or record.checked + CHECK_SECONDS
        if self._is_requested or not record.consent or next_check <= now:
            self._is_checking, self._is_requested = True, False
            self._context.start_task(self._check())
        elif not self._repeat_at or self._state.stop_reason in ("", "pendingvalidation"):
            self._scheduler.wake_at(next_check)  # a subscription that has stopped repeats nothing

    def grant(self, sink_hash: str, rate: int | None) -> None:
        """Records that a sink consented through a callback, to a given rate or else to the requested one.

        sink_hash: of the sink that got the callback. The consent does not count for another one.
        """
        if sink_hash == self._state.plan.sink_hash:
            self._note_answer(True, rate if rate is not None else self._state.plan.rate)
            self._on_answer()

    async def _check(self) -> None:
        plan = self._state.plan
        try:
            consent = await self._ask(plan)
        except Exception as error:
            # The store or the secrets cannot be read now. That is no answer of the sink.
            self._context.log_failure(error)
            consent = HandshakeResult(
                False, reason=f"the sink was not asked: {type(error).__name__}", is_answered=False
            )
        finally:
            self._is_checking = False
        if plan.sink_hash == self._state.plan.sink_hash:
            reason = self._sink_manager.scrub(consent.reason)
            if consent.is_answered:
                self._note_answer(consent.is_allowed, consent.rate, reason)
            else:
                self._note_no_answer(reason)
        self._on_answer()

    async def _ask(self, plan: DeliveryPlan) -> SinkConsent:
        ports = self._context.ports
        target = plan.target(await self._sink_manager.reveal_secrets(), ports.origin)
        assert ports.validator is not None
        return await ports.validator.validate(target, plan.rate, self._create_callback(plan.sink_hash))

    def _note_answer(self, allowed: bool, rate: int | None, reason: str = "") -> None:
        self._unanswered_count, self._repeat_at = 0, 0.0
        self._state.record.checked = self._context.ports.clock.now()
        self._settle(allowed, rate, reason)

    def _note_no_answer(self, reason: str) -> None:
        """Plans the next request soon. A whole day without an answer counts as one refusal (7.1, SUB-712)."""
        record, clock = self._state.record, self._context.ports.clock
        now = clock.now()
        self._unanswered_count += 1
        self._repeat_at = now + _REPETITION.delay(self._unanswered_count, clock.random_fraction())
        if not record.consent or record.checked + 2 * CHECK_SECONDS <= now:
            record.checked = now - CHECK_SECONDS  # the request remains due
            self._settle(False, None, reason)
        else:
            record.reason = reason
            self._save()

    def _settle(self, allowed: bool, rate: int | None, reason: str) -> None:
        if note_consent(self._state.record, allowed, rate, reason):
            self._sink_manager.reset()  # the origin in deliveries changes
        self._save()

    def _create_callback(self, sink_hash: str) -> str | None:
        """The URL at which the sink may consent later, with a 192-bit secret that is valid once."""
        build_url = self._context.ports.build_callback
        if build_url is None:
            return None
        secret = token_urlsafe(24)
        self._state.callbacks.append((hash_secret(secret, sink_hash), self._context.ports.clock.now() + CHECK_SECONDS))
        self._save()
        return build_url(self._state.id, secret)


def hash_secret(secret: str, sink_hash: str) -> str:
    """The hash under which the secret of a callback is stored. It includes the sink, for which alone it is valid."""
    return sha256(f"{secret} {sink_hash}".encode()).hexdigest()

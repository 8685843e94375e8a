"""The consent of a sink: when to request it, and what the sink's answer allows (SUB-711 to 714)."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any, Final

from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.decisions.sink_status import note_consent
from annals.projections.subscriptions.workers.deliverer_context import DelivererContext
from annals.projections.subscriptions.workers.request_scheduler import RequestScheduler
from annals.projections.subscriptions.workers.sink_manager import SinkManager

#: Seconds between two requests for consent, and lifetime of a callback secret.
CHECK_SECONDS: Final = 86400.0


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

    def request_check(self) -> None:
        """Requests a handshake soon."""
        self._is_requested = True

    def check_if_due(self) -> None:
        """Starts a handshake if one is due."""
        if not self._state.needs_consent_request or self._is_checking:
            return
        record, now = self._state.record, self._context.ports.clock.now()
        next_check = record.checked + CHECK_SECONDS
        if self._is_requested or not record.consent or next_check <= now:
            self._is_checking, self._is_requested = True, False
            self._context.start_task(self._check())
        else:
            self._scheduler.wake_at(next_check)

    def grant(self, sink_hash: str, rate: int | None) -> None:
        """Records that a sink consented through a callback, to a given rate or else to the requested one.

        sink_hash: of the sink that got the callback. The consent does not count for another one.
        """
        if sink_hash == self._state.plan.sink_hash:
            self._settle(True, rate if rate is not None else self._state.plan.rate)
            self._on_answer()

    async def _check(self) -> None:
        state, ports = self._state, self._context.ports
        plan = state.plan
        try:
            target = plan.target(await self._sink_manager.reveal_secrets(), ports.origin)
            assert ports.validator is not None
            consent = await ports.validator.validate(target, plan.rate, self._create_callback(plan.sink_hash))
            allowed, rate = consent.is_allowed, consent.rate
        except Exception:
            allowed, rate = False, None
        finally:
            self._is_checking = False
        if plan.sink_hash == state.plan.sink_hash:
            state.record.checked = ports.clock.now()
            self._settle(allowed, rate)
        self._on_answer()

    def _settle(self, allowed: bool, rate: int | None) -> None:
        if note_consent(self._state.record, allowed, rate):
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

"""The sink of one subscription: opened on demand, with valid credentials (SUB-306 to 308, 914)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.subscriptions.contract import Sink, SinkTarget
from annals.projections.subscriptions.decisions.delivery_plan import DeliveryPlan
from annals.projections.subscriptions.decisions.delivery_state import DeliveryState
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.transport.scrub import scrub_secrets

_LOG: Final = logging.getLogger("annals.deliveries")
#: Seconds before expiry at which a token is renewed.
RENEWAL_LEAD_SECONDS: Final = 60.0
#: Seconds until a failed renewal is retried, at first and at most. No event signals that the endpoint is back.
_FIRST_RETRY_SECONDS: Final = 30.0
_LONGEST_RETRY_SECONDS: Final = 300.0
_ACCESS_TOKEN: Final = "sinkcredential.accesstoken"
_REFRESH_TOKEN: Final = "sinkcredential.refreshtoken"
#: Shorter secrets are not removed from text, because they match too much.
_MIN_SECRET_LENGTH: Final = 4


class SinkManager:
    """Opens, renews and closes the sink of one subscription.

    retry_at: before this time, `sink` returns None.
    concurrency: number of concurrent requests that the sink accepts.
    token: the newest token; right after `sink` has returned, that of the sink.
    """

    def __init__(self, ports: DeliveryPorts, state: DeliveryState) -> None:
        self._ports = ports
        self._state = state
        self._record = state.record
        self._sink: Sink | None = None
        self._valid_until = 0.0
        self._secrets: Mapping[str, str] = {}
        # Renewed tokens that are not stored yet. The provider may take no older ones any more.
        self._unstored: list[tuple[Subscription, Mapping[str, str]]] = []
        self._use_counts: dict[Sink, int] = {}
        self._sink_lock = asyncio.Lock()
        self._failure_count = 0
        self.retry_at = 0.0
        self.concurrency = 1
        self.token = ""

    async def sink(self) -> Sink | None:
        """The open sink. None if the credential is unusable now; the DeliveryRecord then says so."""
        if self._sink is not None and self._ports.clock.now() < self._valid_until:
            return self._sink
        async with self._sink_lock:
            return await self._ensure_open()

    async def renew_token(self, refused_token: str) -> bool:
        """Whether there is a new token, after a sink refused that of a request (SUB-307)."""
        plan = self._state.plan
        if not plan.renewal_uri or not refused_token:
            return False
        async with self._sink_lock:
            if plan is not self._state.plan:
                return False
            # Another refused request may already have renewed it.
            return self.token != refused_token or await self._renew()

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secret values with which the sink was opened."""
        return self._secrets

    async def reveal_secrets(self) -> Mapping[str, str]:
        """The secret values of the settings. Raises: LookupError."""
        plan = self._state.plan
        secrets: Mapping[str, str] = {}
        if plan.subscription.secrets:
            secrets = dict(await asyncio.to_thread(self._ports.secrets.reveal, plan.subscription))
            for subscription, values in self._unstored:
                secrets |= values if subscription == plan.subscription else {}
        if plan is self._state.plan:
            self._secrets = secrets
        return secrets

    def reset(self) -> None:
        """Makes the next request reopen the sink with the settings of that time."""
        self._valid_until = 0.0
        self._failure_count, self.retry_at = 0, 0.0

    def scrub(self, text: str) -> str:
        """At most 1 KiB of a text, without secrets (SUB-303, 823)."""
        secrets = (value for value in self._secrets.values() if len(value) >= _MIN_SECRET_LENGTH)
        return scrub_secrets(text.encode(errors="replace"), secrets)

    @asynccontextmanager
    async def using(self, sink: Sink) -> AsyncIterator[None]:
        """Keeps a sink open during a request, even if another sink replaces it meanwhile."""
        self._use_counts[sink] = self._use_counts.get(sink, 0) + 1
        try:
            yield
        finally:
            users = self._use_counts.get(sink, 0) - 1
            if users > 0:
                self._use_counts[sink] = users
            elif users == 0:
                del self._use_counts[sink]
                if sink is not self._sink:
                    await sink.close()

    async def close(self) -> None:
        """Closes the sink, and replaced sinks that are still in use."""
        sinks = {*self._use_counts, *([self._sink] if self._sink is not None else ())}
        self._sink = None
        self._use_counts.clear()
        for sink in sinks:
            await sink.close()

    async def _retire(self) -> None:
        """Replaces the sink by none, and closes it unless a request still uses it."""
        sink, self._sink = self._sink, None
        if sink is not None and sink not in self._use_counts:
            await sink.close()

    async def _ensure_open(self) -> Sink | None:
        now = self._ports.clock.now()
        if self._sink is not None and now < self._valid_until:
            return self._sink
        plan = self._state.plan
        await self._store_tokens()
        try:
            await self.reveal_secrets()
        except LookupError:
            self._note_unusable_credential(plan, now, "a secret of the subscription is missing", retry=False)
            return None
        if plan is not self._state.plan:
            return None  # an update arrived meanwhile
        expires = self._record.expires or plan.token_expiry
        if expires is not None and now >= expires - (RENEWAL_LEAD_SECONDS if plan.renewal_uri else 0.0):
            if not plan.renewal_uri:
                self._note_unusable_credential(plan, now, "the access token has expired", retry=False)
                return None
            if not await self._renew():
                return None
            expires = self._record.expires or None
        await self._retire()
        if plan is not self._state.plan:
            return None  # an update arrived meanwhile
        return self._open(plan.target(self._secrets, self._state.origin(self._ports.origin)), expires)

    def _open(self, target: SinkTarget, expires: float | None) -> Sink | None:
        now = self._ports.clock.now()
        try:
            self._sink = self._ports.sinks[self._state.plan.protocol](target, self._ports.resolver)
        except (KeyError, ImportError):
            self._record.note_error("protocolunavailable", self._state.plan.protocol, now)
            self.retry_at = now + _LONGEST_RETRY_SECONDS
            return None
        if self._record.state == "credentialexpired":
            self._record.state = ""
        self._failure_count = 0
        self.token = target.credential.token if target.credential else ""
        # A short-lived token is renewed after half of its lifetime.
        lead_seconds = (
            min(RENEWAL_LEAD_SECONDS, (expires - now) / 2)
            if expires is not None and self._state.plan.renewal_uri
            else 0.0
        )
        self._valid_until = float("inf") if expires is None else expires - lead_seconds
        self.concurrency = getattr(self._sink, "concurrency", 1)
        return self._sink

    async def _renew(self) -> bool:
        plan, now = self._state.plan, self._ports.clock.now()
        try:
            tokens = await self._ports.renew_tokens(
                plan.token_endpoint(self._secrets), self._secrets.get(_REFRESH_TOKEN, "")
            )
        except Exception as error:
            _LOG.warning("subscription %s: no new token: %s", plan.subscription.id, self.scrub(repr(error)))
            tokens = None
        if tokens is None:
            self._note_unusable_credential(plan, now, "the token endpoint gives no new token", retry=True)
            return False
        values = {_ACCESS_TOKEN: tokens.accesstoken} | (
            {_REFRESH_TOKEN: tokens.refreshtoken} if tokens.refreshtoken else {}
        )
        self._unstored.append((plan.subscription, values))
        await self._store_tokens()
        if plan is not self._state.plan:
            return False  # an update arrived meanwhile; if it kept the credential, the stored tokens are used next
        self._secrets = {**self._secrets, **values}
        # A token without a known expiry is used until the sink refuses it.
        self._record.expires = tokens.expires if tokens.expires is not None else float(1 << 40)
        self._valid_until = 0.0
        self.token = tokens.accesstoken
        return True

    async def _store_tokens(self) -> None:
        """Stores what was renewed, for the holder of the lock. If that fails, it is tried again at the next opening."""
        while self._unstored:
            await asyncio.to_thread(self._ports.secrets.replace, *self._unstored[0])
            del self._unstored[0]

    def _note_unusable_credential(self, plan: DeliveryPlan, now: float, message: str, *, retry: bool) -> None:
        """Records that the credential of a plan is unusable, unless an update arrived, which may have fixed it.

        message: why, for the owner. retry: whether it may become usable without the owner.
        """
        if plan is not self._state.plan:
            return
        self._record.note_error("credentialexpired", message, now)
        if self._record.state not in ("gone", "suspended"):  # only the owner ends these
            self._record.state = "credentialexpired"
        self._failure_count += 1
        self.retry_at = (
            now + min(_FIRST_RETRY_SECONDS * 2 ** min(self._failure_count - 1, 10), _LONGEST_RETRY_SECONDS)
            if retry
            else float("inf")
        )

"""The ports of the deliverer: clock and randomness, secrets, access rights, handshakes and token renewal."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

from annals.domain.subscriptions.subscription import Subscription
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import SINKS, OpenSink, SinkTarget

#: Whether a subscription's owner may now read the entity with an xid, which an event is about (SUB-911).
MayRead = Callable[[Subscription, str], bool]
#: How sinks that have not consented are treated (SUB-711).
ValidationPolicy = Literal["required", "optional", "off"]


@dataclass(frozen=True, slots=True)
class DeliveryClock:
    """Clock and randomness.

    now: seconds since 1970.
    sleep: waits for a number of seconds.
    random_fraction: a random number in [0, 1).
    """

    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    random_fraction: Callable[[], float] = random.random


class SubscriptionSecrets(Protocol):
    """The secret values of subscriptions. Its methods read tables, so callers run them in threads."""

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        """The values by name, such as `sinkcredential.secret`. Raises: LookupError when one is missing (SUB-914)."""

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        """Replaces some values, such as a renewed token (SUB-913)."""


class SinkConsent(Protocol):
    """A sink's answer to the handshake. rate: requests a minute, None for unlimited. reason: why it is no consent."""

    @property
    def is_allowed(self) -> bool: ...
    @property
    def rate(self) -> int | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def is_answered(self) -> bool:
        """False if the sink could not be asked, or did not answer: then it has not refused either."""


class SinkValidator(Protocol):
    """The client side of the webhook validation handshake (7.1)."""

    async def validate(self, target: SinkTarget, rate: int | None, callback: str | None) -> SinkConsent:
        """Sends the handshake to a sink.

        rate: requests a minute to ask for.
        callback: URL at which the sink may consent later.
        """


class RenewedTokens(NamedTuple):
    """The result of a token renewal.

    expires: seconds since 1970, None if the endpoint did not say.
    refreshtoken: "" to keep the current one.
    """

    accesstoken: str
    expires: float | None = None
    refreshtoken: str = ""


#: Renews tokens at an endpoint with a refresh token; None if the endpoint refuses or fails (SUB-307).
RenewTokens = Callable[[str, str], Awaitable[RenewedTokens | None]]


class NoSecrets:
    """For registries that have no secrets."""

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        """See SubscriptionSecrets."""
        if subscription.secrets:
            raise LookupError(next(iter(subscription.secrets)))
        return {}

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        """See SubscriptionSecrets."""


def _may_read_all(subscription: Subscription, xid: str) -> bool:
    return True


async def _refuse_renewal(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
    return None


@dataclass(frozen=True, slots=True)
class DeliveryPorts:
    """All ports of the deliverer, with defaults for those that are not given.

    origin: value of `WebHook-Request-Origin` in handshakes and deliveries.
    build_callback: builds the URL at which a sink may consent later, from a subscription's id and a secret; None if
    callbacks are not offered. sinks: sink factories by protocol.
    """

    resolver: Resolver
    clock: DeliveryClock = field(default_factory=DeliveryClock)
    secrets: SubscriptionSecrets = field(default_factory=NoSecrets)
    may_read: MayRead = _may_read_all
    validator: SinkValidator | None = None
    policy: ValidationPolicy = "optional"
    renew_tokens: RenewTokens = _refuse_renewal
    origin: str = ""
    build_callback: Callable[[str, str], str] | None = None
    sinks: Mapping[str, OpenSink] = field(default_factory=lambda: SINKS)


#: Seconds after which a silent process loses its subscriptions (SUB-805).
LEASE_SECONDS: Final = 10.0

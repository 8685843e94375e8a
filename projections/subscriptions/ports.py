"""What deliveries need of the world: time and chance, secrets, rights, handshakes and renewed tokens."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

from domain.subscriptions.subscription import Subscription
from projections.outgoing.resolver import Resolver
from projections.subscriptions.contract import SINKS, OpenSink, SinkTarget

#: Whether the owner of a subscription may read now what an event tells of, by its xid (SUB-911).
MayRead = Callable[[str, str], bool]
#: What is done about sinks that have not consented (SUB-711).
ValidationPolicy = Literal["required", "optional", "off"]


@dataclass(frozen=True, slots=True)
class DeliveryClock:
    """now: seconds since 1970. sleep: lets them pass. chance: a number from 0 up to 1, another one each time."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random


class SubscriptionSecrets(Protocol):
    """The secret values of subscriptions. Its methods look at tables and are called in threads."""

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        """The values by name, such as `sinkcredential.secret`. Raises: LookupError where one is missing (SUB-914)."""

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        """Puts other values in the place of some, such as a renewed token (SUB-913)."""


class SinkConsent(Protocol):
    """What a sink answered to the handshake. rate: requests a minute, None for any number."""

    @property
    def allowed(self) -> bool: ...
    @property
    def rate(self) -> int | None: ...


class SinkValidator(Protocol):
    """The handshake of webhooks as a client (7.1)."""

    async def validate(self, target: SinkTarget, rate: int | None, callback: str | None) -> SinkConsent:
        """Asks a sink. rate: requests a minute that are wanted. callback: where it may consent later."""


class RenewedTokens(NamedTuple):
    """What a renewal brought. expires: in seconds since 1970, None where nobody said. refreshtoken: "" to keep it."""

    accesstoken: str
    expires: float | None = None
    refreshtoken: str = ""


#: Renews tokens at an endpoint with a refresh token; None where that is refused or fails (SUB-307).
RenewTokens = Callable[[str, str], Awaitable[RenewedTokens | None]]


class NoSecrets:
    """For registries without any."""

    def reveal(self, subscription: Subscription) -> Mapping[str, str]:
        """See SubscriptionSecrets."""
        if subscription.secrets:
            raise LookupError(next(iter(subscription.secrets)))
        return {}

    def replace(self, subscription: Subscription, values: Mapping[str, str]) -> None:
        """See SubscriptionSecrets."""


class UncheckedResolver:
    """Looks names up as the system does and refuses nothing: for sinks that are known."""

    async def resolve(self, host: str, port: int) -> str:
        """See Resolver."""
        return str((await asyncio.get_running_loop().getaddrinfo(host, port))[0][4][0])


def _may_read_all(owner: str, xid: str) -> bool:
    return True


async def _no_renewal(endpoint: str, refreshtoken: str) -> RenewedTokens | None:
    return None


@dataclass(frozen=True, slots=True)
class DeliveryPorts:
    """All of them, with what does where there is no other.

    origin: what handshakes and deliveries say in `WebHook-Request-Origin`. callback: makes the URL at which a sink may
    consent from a subscription's id and a secret, None where that is not offered. sinks: what opens them by protocol.
    """

    resolver: Resolver
    time: DeliveryClock = field(default_factory=DeliveryClock)
    secrets: SubscriptionSecrets = field(default_factory=NoSecrets)
    reads: MayRead = _may_read_all
    validator: SinkValidator | None = None
    policy: ValidationPolicy = "optional"
    renew: RenewTokens = _no_renewal
    origin: str = ""
    callback: Callable[[str, str], str] | None = None
    sinks: Mapping[str, OpenSink] = field(default_factory=lambda: SINKS)


#: Seconds after which a process that says nothing has lost what it delivers, and between two signs of life (SUB-805).
LEASE_SECONDS: Final = 10.0
BEAT: Final = 2.0

"""What a deliverer and its sinks promise each other.

A sink knows one protocol and nothing of subscriptions, retries or order: it is given events and says what became of
them. Sinks are asyncio; a client library that is not runs in threads of its own.
Spec: CloudEvents Subscriptions API, "Protocol settings"; rules SUB-201 to 204, SUB-305, SUB-701 to 710, SUB-821.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol

from cloudevents.core.v1.event import CloudEvent

from projections.outgoing.resolver import Resolver


class DeliveryResult(Enum):
    """What became of an attempt.

    DELIVERED: acknowledged, or for at-most-once settings handed over. RETRY: not now. REJECTED: never, as it is (dead
    letter at once; a batch is tried in halves first). UNAUTHORIZED: the credential is refused. GONE: the sink wants
    nothing any more.
    """

    DELIVERED = "delivered"
    RETRY = "retry"
    REJECTED = "rejected"
    UNAUTHORIZED = "unauthorized"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """An attempt's end.

    code: the protocol's own, such as `503`, `timeout` or `amqp:not-found`; message: at most 1 KiB, without secrets, for
    the owner. until: no attempt before this time, and then this one does not count (Retry-After). stored: whether who
    acknowledged it keeps it, where settings alone do not say so.
    """

    result: DeliveryResult
    code: str = ""
    message: str = ""
    until: datetime | None = None
    stored: bool = False


DELIVERED: Final = Outcome(DeliveryResult.DELIVERED)
STORED: Final = Outcome(DeliveryResult.DELIVERED, stored=True)


@dataclass(frozen=True, slots=True)
class Credential:
    """What a sink shows who it is with, secrets included: never logged, never kept beyond the connection.

    type: PLAIN, ACCESSTOKEN or REFRESHTOKEN. token, tokentype: of the latter two; the deliverer renews them.
    """

    type: str
    identifier: str = ""
    secret: str = ""
    token: str = ""
    tokentype: str = "bearer"

    def __repr__(self) -> str:
        return f"Credential({self.type})"


@dataclass(frozen=True, slots=True)
class SinkTarget:
    """Where and how to deliver. uri: of the sink, with its query. settings: `protocolsettings` with all defaults and
    secret values filled in. contentmode: `structured`, `binary` or `batched`. seconds: an attempt may take. origin:
    what `WebHook-Request-Origin` says. key: signs deliveries over HTTP (Standard Webhooks), where there is one.
    """

    subscription: str
    uri: str
    settings: Mapping[str, Any]
    contentmode: str = "structured"
    credential: Credential | None = None
    seconds: float = 30.0
    origin: str = ""
    key: bytes | None = None


class Sink(Protocol):
    """A connection to a sink, or what makes one.

    One that has a number `concurrency` takes so many `send` calls at a time; others are used by one task at a time.
    """

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """What became of one event, or of several as one batch. Raises nothing but CancelledError."""

    async def close(self) -> None:
        """Lets go of connections and threads."""


#: Makes a Sink; connects when it first sends. Raises: ImportError where an optional client library is missing.
OpenSink = Callable[[SinkTarget, Resolver], Sink]

#: How to open sinks, by protocol.
SINKS: Final[dict[str, OpenSink]] = {}


def sink(*protocols: str) -> Callable[[OpenSink], OpenSink]:
    """Registers what opens the sinks of protocols: `@sink("MQTT3", "MQTT5")`."""

    def register(open: OpenSink) -> OpenSink:
        SINKS.update(dict.fromkeys(protocols, open))
        return open

    return register

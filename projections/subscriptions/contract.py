"""The contract between the deliverer and its sinks.

A sink knows one protocol. It does not know subscriptions, retries or ordering: it receives events and returns the
outcome. Sinks run in asyncio; a client library that blocks runs in its own threads.
Spec: CloudEvents Subscriptions API, "Protocol settings"; rules SUB-201 to 204, SUB-305, SUB-701 to 710, SUB-821.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Protocol

from cloudevents.core.v1.event import CloudEvent

from annals.projections.outgoing.resolver import Resolver


class DeliveryResult(Enum):
    """The result of an attempt.

    DELIVERED: acknowledged, or handed over where the settings ask for at most once.
    RETRY: failed for now.
    REJECTED: this event can never be delivered. It becomes a dead letter at once; a batch is first retried in halves.
    UNAUTHORIZED: the sink refused the credential.
    GONE: the sink wants no more events.
    """

    DELIVERED = "delivered"
    RETRY = "retry"
    REJECTED = "rejected"
    UNAUTHORIZED = "unauthorized"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt.

    code: the code of the protocol, such as `503`, `timeout` or `amqp:not-found`.
    message: for the owner; at most 1 KiB, without secrets.
    retry_at: no attempt before this time (Retry-After). With it, this attempt does not count.
    is_stored: whether the peer that acknowledged stores the event, for protocols whose settings alone do not say so.
    """

    result: DeliveryResult
    code: str = ""
    message: str = ""
    retry_at: datetime | None = None
    is_stored: bool = False


DELIVERED: Final = Outcome(DeliveryResult.DELIVERED)
STORED: Final = Outcome(DeliveryResult.DELIVERED, is_stored=True)


@dataclass(frozen=True, slots=True)
class Credential:
    """The credential that a sink connection presents, with its secret values.

    Never logged; dropped with the connection.
    type: PLAIN, ACCESSTOKEN or REFRESHTOKEN.
    token, tokentype: for ACCESSTOKEN and REFRESHTOKEN; the deliverer renews them.
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
    """Where and how to deliver.

    uri: the sink's URI with its query.
    settings: `protocolsettings` with all defaults and secret values filled in.
    contentmode: `structured`, `binary` or `batched`.
    timeout: time limit of one attempt.
    origin: value of `WebHook-Request-Origin`.
    signing_key: signs HTTP deliveries (Standard Webhooks), if set.
    """

    subscription: str
    uri: str
    settings: Mapping[str, Any]
    contentmode: str = "structured"
    credential: Credential | None = None
    timeout: float = 30.0
    origin: str = ""
    signing_key: bytes | None = None


class Sink(Protocol):
    """A connection to a sink, opened when needed.

    A sink with an integer attribute `concurrency` accepts that many `send` calls at a time. Any other sink is used by
    one task at a time.
    """

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """The outcome of sending one event, or several events as one batch. Raises nothing but CancelledError."""

    async def close(self) -> None:
        """Releases connections and threads."""


#: Creates a Sink, which connects on its first send. Raises: ImportError when an optional client library is missing.
OpenSink = Callable[[SinkTarget, Resolver], Sink]

#: The factory of sinks for each protocol.
SINKS: Final[dict[str, OpenSink]] = {}


def sink(*protocols: str) -> Callable[[OpenSink], OpenSink]:
    """Registers the factory for sinks of these protocols: `@sink("MQTT3", "MQTT5")`."""

    def register(factory: OpenSink) -> OpenSink:
        SINKS.update(dict.fromkeys(protocols, factory))
        return factory

    return register

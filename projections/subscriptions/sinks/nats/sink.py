"""The NATS sinks, with one connection each. They connect on first use, and again after a failure.

Concurrent `send` calls share the connection. An event counts as delivered when the server has read it or, if a
JetStream stream stores the subject, when the stream has stored it. With a stream that is at least once, without one at
most once (SUB-709). nats-py is optional; this module can be imported without it.
Spec: CloudEvents NATS protocol binding 1.0.2; SUB-305, 701, 702.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudevents.core.v1.event import CloudEvent

from annals.domain.subscriptions.sink_uris import NATS
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome, SinkTarget, sink
from annals.projections.subscriptions.sinks import cloudevents
from annals.projections.subscriptions.transport.connect import SinkRefused, failure_outcome, target_address
from annals.projections.subscriptions.transport.scrub import scrub_outcome

if TYPE_CHECKING:
    from annals.projections.subscriptions.sinks.nats.connection import NatsConnection

#: Characters that a header value carries unescaped; all others are percent-encoded (SUB-701).
_UNENCODED: Final = "".join(each for each in map(chr, range(0x21, 0x7F)) if each not in '"%')
#: The outcome of an event for a closed sink.
_CLOSED: Final = Outcome(DeliveryResult.RETRY, "closed")


@sink(NATS)
def open_nats(target: SinkTarget, resolver: Resolver) -> NatsSink:
    """A NATS sink. Raises: ImportError without nats-py."""
    import_module("annals.projections.subscriptions.sinks.nats.connection")  # fails here, not at the first event

    return NatsSink(target, resolver)


class NatsSink:
    """See contract.Sink."""

    #: Largest useful number of concurrent `send` calls.
    concurrency: Final = 32

    def __init__(self, target: SinkTarget, resolver: Resolver) -> None:
        self._target, self._resolver = target, resolver
        self._address = target_address(target, NATS)
        self._connection: NatsConnection | None = None
        self._connect_lock = asyncio.Lock()
        self._is_closed = False

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """See contract.Sink. For several events, the first outcome that is not a success, or the last outcome."""
        outcome = DELIVERED
        for event in events:
            outcome = await self._send(event)
            if outcome.result is not DeliveryResult.DELIVERED:
                break
        return outcome

    async def close(self) -> None:
        """See contract.Sink."""
        self._is_closed = True
        await self._drop(self._connection)

    async def _send(self, event: CloudEvent) -> Outcome:
        started_at = asyncio.get_running_loop().time()
        try:
            headers, payload = encode_message(event, self._target.contentmode)
        except ValueError as error:
            return Outcome(
                DeliveryResult.REJECTED, "unwritable", f"the event cannot be written: {type(error).__name__}"
            )
        try:
            connection = self._connection
            if connection is None or connection.is_closed:
                async with asyncio.timeout(self._target.timeout):
                    connection = await self._open_connection()
            outcome = await connection.publish(payload, headers, started_at)
            return scrub_outcome(outcome, self._target.credential) if outcome.message else outcome
        except Exception as error:  # such as an unreachable network: no exception may escape
            return scrub_outcome(failure_outcome(error), self._target.credential)

    async def _open_connection(self) -> NatsConnection:
        """The open connection. Raises: SinkRefused, ForbiddenAddress, OSError."""
        from annals.projections.subscriptions.sinks.nats.connection import connect_nats

        async with self._connect_lock:
            if self._is_closed:
                raise SinkRefused(_CLOSED)
            if self._connection is None or self._connection.is_closed:
                await self._drop(self._connection)
                connection = await connect_nats(self._target, self._address, self._resolver)
                if self._is_closed:  # closed while connecting
                    await connection.close()
                    raise SinkRefused(_CLOSED)
                self._connection = connection
            return self._connection

    async def _drop(self, connection: NatsConnection | None) -> None:
        if connection is self._connection:
            self._connection = None
        if connection is not None:
            await connection.close()


def encode_message(event: CloudEvent, contentmode: str) -> tuple[dict[str, str], bytes]:
    """Headers and payload of an event's message. Raises: ValueError."""
    if not cloudevents.is_sent_binary(event, contentmode):
        return {"Content-Type": cloudevents.STRUCTURED}, cloudevents.structured_json(event)
    headers = {
        f"ce-{name}": quote(value, safe=_UNENCODED) for name, value in cloudevents.text_attributes(event).items()
    }
    return headers, cloudevents.data_bytes(event)

"""The sinks of NATS: one connection each, made when something is sent and again after it broke.

`send` may be called any number of times at once: what is on its way shares the connection. An event counts as delivered
when the server has read it, or, where a stream of JetStream takes the subject in, when the stream has stored it: that
is at least once, and without a stream at most once (SUB-709). nats-py is optional; this module can be imported without.
Spec: CloudEvents NATS protocol binding 1.0.2; SUB-305, 701, 702.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudevents.core.v1.event import CloudEvent

from domain.subscriptions.sink_uris import NATS
from projections.outgoing.resolver import Resolver
from projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome, SinkTarget, sink
from projections.subscriptions.sinks import cloudevents
from projections.subscriptions.transport.connect import SinkRefused, failure_outcome, target_address

if TYPE_CHECKING:
    from projections.subscriptions.sinks.nats.connection import NatsConnection

#: Header values hold these as they are, and all else percent-encoded (SUB-701).
_PLAIN: Final = "".join(each for each in map(chr, range(0x21, 0x7F)) if each not in '"%')


@sink(NATS)
def open_nats(target: SinkTarget, resolver: Resolver) -> NatsSink:
    """A sink. Raises: ImportError without nats-py."""
    import_module("projections.subscriptions.sinks.nats.connection")  # its client is missed now, not at the first event

    return NatsSink(target, resolver)


class NatsSink:
    """See contract.Sink."""

    #: `send` calls that there is use in running at a time.
    concurrency: Final = 32

    def __init__(self, target: SinkTarget, resolver: Resolver) -> None:
        self._target, self._resolver = target, resolver
        self._at = target_address(target, NATS)
        self._link: NatsConnection | None = None
        self._connecting = asyncio.Lock()
        self._closed = False

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """See contract.Sink; of several events, the first outcome that is no success, or the last."""
        outcome = DELIVERED
        for event in events:
            outcome = await self._send(event)
            if outcome.result is not DeliveryResult.DELIVERED:
                break
        return outcome

    async def close(self) -> None:
        """See contract.Sink."""
        self._closed = True
        await self._drop(self._link)

    async def _send(self, event: CloudEvent) -> Outcome:
        began = asyncio.get_running_loop().time()
        try:
            headers, payload = encode_message(event, self._target.contentmode)
        except ValueError as error:
            return Outcome(
                DeliveryResult.REJECTED, "unwritable", f"the event cannot be written: {type(error).__name__}"
            )
        try:
            link = self._link
            if link is None or link.over:
                async with asyncio.timeout(self._target.seconds):
                    link = await self._connected()
            outcome = await link.publish(payload, headers, began)
            return self._scrubbed(outcome) if outcome.message else outcome
        except Exception as error:  # Unreachable among others: nothing may get out
            return self._scrubbed(failure_outcome(error))

    def _scrubbed(self, outcome: Outcome) -> Outcome:
        """The outcome without the secret, should the server have repeated it (SUB-303)."""
        credential = self._target.credential
        for secret in (credential.secret, credential.token) if credential else ():
            if secret:
                outcome = replace(outcome, message=outcome.message.replace(secret, "…"))
        return outcome

    async def _connected(self) -> NatsConnection:
        """The connection. Raises: Refused, ForbiddenAddress, OSError."""
        from projections.subscriptions.sinks.nats.connection import connect_nats

        async with self._connecting:
            if self._closed:
                raise SinkRefused(Outcome(DeliveryResult.RETRY, "closed"))
            if self._link is None or self._link.over:
                await self._drop(self._link)
                self._link = await connect_nats(self._target, self._at, self._resolver)
            return self._link

    async def _drop(self, link: NatsConnection | None) -> None:
        if link is self._link:
            self._link = None
        if link is not None:
            await link.close()


def encode_message(event: CloudEvent, contentmode: str) -> tuple[dict[str, str], bytes]:
    """Headers and payload of an event's message. Raises: ValueError."""
    if not cloudevents.is_sent_binary(event, contentmode):
        return {"Content-Type": cloudevents.STRUCTURED}, cloudevents.structured_json(event)
    headers = {f"ce-{name}": quote(value, safe=_PLAIN) for name, value in cloudevents.text_attributes(event).items()}
    return headers, cloudevents.data_bytes(event)

"""Sends events to an AMQP 1.0 peer. Concurrent `send` calls share one connection, as far as credit allows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from cloudevents.core.v1.event import CloudEvent

from annals.domain.subscriptions.sink_uris import AMQP, SinkAddress
from annals.projections.outgoing import certificates
from annals.projections.outgoing.client_websocket import ClientWebSocket
from annals.projections.outgoing.resolver import ForbiddenAddress, Resolver
from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome, SinkTarget
from annals.projections.subscriptions.sinks.amqp.connection import AmqpConnection, AmqpConnectionSettings
from annals.projections.subscriptions.sinks.amqp.messages import encode_message
from annals.projections.subscriptions.sinks.amqp.outcomes import UNAUTHORIZED, condition_outcome, rejected_outcome
from annals.projections.subscriptions.transport.connect import dial, failure_outcome, target_address
from annals.projections.subscriptions.transport.scrub import scrub_outcome


class AmqpSink:
    """See contract.Sink."""

    #: Largest useful number of concurrent `send` calls.
    concurrency: Final = 32

    def __init__(self, target: SinkTarget, resolver: Resolver) -> None:
        self._target, self._resolver = target, resolver
        self._address = target_address(target, AMQP)
        self._connection: AmqpConnection | None = None
        self._connect_lock = asyncio.Lock()
        self._is_closed = False

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """See contract.Sink. For several events, the first outcome that is not a success."""
        try:
            async with asyncio.timeout(self._target.timeout):
                for event in events:
                    outcome = await self._send(event)
                    if outcome.result is not DeliveryResult.DELIVERED:
                        return scrub_outcome(outcome, self._target.credential)
        except TimeoutError as error:
            return failure_outcome(error)
        return DELIVERED

    async def close(self) -> None:
        """See contract.Sink."""
        self._is_closed = True
        if connection := self._connection:
            connection.close()
            await asyncio.shield(connection.closed)

    async def _send(self, event: CloudEvent) -> Outcome:
        try:
            encoded = encode_message(event, self._target.settings["address"], self._target.contentmode == "binary")
        except (ValueError, RecursionError) as error:
            return rejected_outcome("unwritable", type(error).__name__)
        if self._target.credential and self._target.credential.type != "PLAIN":
            return condition_outcome(UNAUTHORIZED, "AMQP takes a name and a password, not a token")  # SUB-305
        async with self._connect_lock:
            try:
                connection = await self._open_connection()
            except (ForbiddenAddress, OSError) as error:
                return failure_outcome(error)
        return await connection.send(encoded)

    async def _open_connection(self) -> AmqpConnection:
        """The open connection; opened if there is none. Raises: ForbiddenAddress, OSError."""
        if self._is_closed:
            raise ConnectionError
        if self._connection is None or self._connection.closed_outcome:
            ((host, port),) = self._address.servers
            raw_socket = await dial(host, port, self._resolver)
            try:
                settings = _connection_settings(self._target, self._address, raw_socket.getpeername()[0])
                websocket = (
                    ClientWebSocket(self._address, "/", "amqp", strict=True)
                    if self._address.scheme.startswith("ws")
                    else None
                )
                _, self._connection = await asyncio.get_running_loop().create_connection(
                    lambda: AmqpConnection(settings, websocket),
                    sock=raw_socket,
                    ssl=certificates.client_tls_context(self._resolver) if self._address.tls else None,
                    # The name that the certificate must match, whatever the address is.
                    server_hostname=host if self._address.tls else None,
                )
            except BaseException:
                raw_socket.close()
                raise
            if self._is_closed:  # closed while connecting
                await self.close()
                raise ConnectionError
        return self._connection


def _connection_settings(target: SinkTarget, sink_address: SinkAddress, address: str) -> AmqpConnectionSettings:
    """The connection settings for a target. address: IP address of the peer."""
    settings, credential = target.settings, target.credential
    return AmqpConnectionSettings(
        host=sink_address.servers[0][0],
        address=settings["address"],
        linkname=settings.get("linkname", ""),
        presettled=settings.get("sendersettlementmode") == "settled",
        linkproperties=settings.get("linkproperties", {}),
        user=credential.identifier if credential else None,
        password=credential.secret if credential else "",
        # Without TLS, a password is sent only to this machine (SUB-306).
        secure=sink_address.tls or ip_address(address).is_loopback,
    )

"""Connects to a sink: TCP to the checked address, TLS with the host's name, and the outcomes of failures.

This module uses no threads and resolves no names: the Resolver supplies the address.
Spec: SUB-901, 904, 906.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import Final, TypeVar

from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.sink_uris import SinkAddress, parse_sink
from annals.projections.outgoing import certificates
from annals.projections.outgoing.resolver import ADDRESS_SECONDS, ForbiddenAddress, Resolver, addresses_of
from annals.projections.subscriptions.contract import DeliveryResult, Outcome, SinkTarget

T = TypeVar("T")


def target_address(target: SinkTarget, protocol: str) -> SinkAddress:
    """The parts of a target's URI. Raises: InvalidSubscription for a URI that was never checked."""
    return parse_sink(target.uri, protocol, ErrorPlace())


class SinkRefused(Exception):
    """A refusal by the sink, or before reaching it. outcome: the outcome of the attempt."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.code)
        self.outcome = outcome


async def dial(host: str, port: int, resolver: Resolver) -> socket.socket:
    """A connection to the first address of a host that answers. Raises: ForbiddenAddress, OSError."""
    addresses = await addresses_of(resolver, host, port)
    for address in addresses[:-1]:
        with suppress(OSError):
            return await asyncio.wait_for(_connect(address, port), ADDRESS_SECONDS)
    return await _connect(addresses[-1], port)


async def _connect(address: str, port: int) -> socket.socket:
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, (address, port))
    except BaseException:
        connection.close()
        raise
    return connection


def is_private(connection: socket.socket, tls: bool) -> bool:
    """Whether a connection may carry a secret: it has TLS or stays on this machine (SUB-306)."""
    return tls or ip_address(connection.getpeername()[0]).is_loopback


INSECURE_CHANNEL: Final = Outcome(
    DeliveryResult.UNAUTHORIZED, "insecure", "credentials are not sent over a channel without TLS"
)


async def start_tls(connection: socket.socket, host: str, resolver: Resolver) -> ssl.SSLSocket:
    """The connection with TLS, verified for the host. Raises: ssl.SSLError, OSError, and closes the connection."""
    try:
        tls_socket = certificates.client_tls_context(resolver).wrap_socket(
            connection, server_hostname=host, do_handshake_on_connect=False
        )
    except BaseException:
        connection.close()
        raise
    try:
        await retry_when_ready(tls_socket, tls_socket.do_handshake)
    except BaseException:
        tls_socket.close()
        raise
    return tls_socket


async def retry_when_ready(connection: socket.socket, operation: Callable[[], T]) -> T:
    """The result of an operation on a non-blocking socket, once the socket is ready."""
    while True:
        try:
            return operation()
        except (ssl.SSLWantReadError, BlockingIOError):
            await _wait_until_ready(connection, writing=False)
        except ssl.SSLWantWriteError:
            await _wait_until_ready(connection, writing=True)


async def _wait_until_ready(connection: socket.socket, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    add, remove = (loop.add_writer, loop.remove_writer) if writing else (loop.add_reader, loop.remove_reader)
    descriptor, ready = connection.fileno(), loop.create_future()

    def tell() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, tell)
    try:
        await ready
    finally:
        remove(descriptor)


def failure_outcome(error: Exception) -> Outcome:
    """The outcome of an attempt that could not connect. The message contains no address (SUB-904)."""
    match error:
        case SinkRefused():
            return error.outcome
        case ForbiddenAddress():
            return _retry_outcome("unreachable", str(error))
        case TimeoutError():
            return _retry_outcome("timeout", "no answer in time")
        case socket.gaierror():
            return _retry_outcome("unresolved", "the host has no address")
        case ssl.SSLCertVerificationError():
            return _retry_outcome("tls", f"the certificate is not accepted: {error.verify_message}")
        case ssl.SSLError():
            return _retry_outcome("tls", f"TLS failed: {error.reason or 'no reason given'}")
        case OSError(errno=int(number)):
            return _retry_outcome(errno.errorcode.get(number, "connection"), os.strerror(number))
        case _:
            return _retry_outcome("connection", "the connection failed")


def _retry_outcome(code: str, message: str) -> Outcome:
    return Outcome(DeliveryResult.RETRY, code, message[:1024])

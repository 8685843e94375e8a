"""Connections to other registries, only to addresses that the operator permits (LEG-1108).

Each connection resolves its name once and uses only addresses that passed the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import httpcore
import httpx

from annals.projections.outgoing import certificates
from annals.projections.outgoing.resolver import ADDRESS_SECONDS, ForbiddenAddress, Resolver, addresses_of


def guarded_transport(resolver: Resolver, requires_loopback: bool = False) -> httpx.HTTPTransport:
    """The transport of HTTP clients for other registries.

    requires_loopback: refuses all other machines, for requests with credentials and without TLS (SUB-306).
    It uses no proxy, because a proxy would resolve names itself.
    """
    context = certificates.client_tls_context(resolver)
    transport = httpx.HTTPTransport(verify=context, trust_env=False)
    transport._pool = httpcore.ConnectionPool(
        ssl_context=context, network_backend=_GuardedBackend(resolver, requires_loopback)
    )
    return transport


class _GuardedBackend(httpcore.NetworkBackend):
    def __init__(self, resolver: Resolver, requires_loopback: bool) -> None:
        self._resolver, self._requires_loopback = resolver, requires_loopback
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            addresses = asyncio.run(addresses_of(self._resolver, host, port))
        except (ForbiddenAddress, OSError) as error:
            raise httpcore.ConnectError(str(error)) from None
        if self._requires_loopback and not all(ip_address(address).is_loopback for address in addresses):
            raise httpcore.ConnectError("credentials are sent over TLS only")
        for address in addresses[:-1]:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return self._backend.connect_tcp(address, port, ADDRESS_SECONDS, local_address, socket_options)
        return self._backend.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

"""Connections to other registries, only to addresses that the operator permits (LEG-1108).

Each connection resolves its name once and uses only addresses that passed the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import httpcore
import httpx

from annals.projections.outgoing import certificates
from annals.projections.outgoing.http_client import ADDRESS_SECONDS, MultiAddressResolver
from annals.projections.outgoing.resolver import ForbiddenAddress, Resolver


def guarded_transport(resolver: Resolver) -> httpx.HTTPTransport:
    """The transport of HTTP clients for other registries.

    It uses no proxy, because a proxy would resolve names itself.
    """
    context = certificates.client_tls_context(resolver)
    transport = httpx.HTTPTransport(verify=context, trust_env=False)
    transport._pool = httpcore.ConnectionPool(ssl_context=context, network_backend=_GuardedBackend(resolver))
    return transport


class _GuardedBackend(httpcore.NetworkBackend):
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
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
            addresses = asyncio.run(self._addresses(host, port))
        except (ForbiddenAddress, OSError) as error:
            raise httpcore.ConnectError(str(error)) from None
        for address in addresses[:-1]:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return self._backend.connect_tcp(address, port, ADDRESS_SECONDS, local_address, socket_options)
        return self._backend.connect_tcp(addresses[-1], port, timeout, local_address, socket_options)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        if isinstance(self._resolver, MultiAddressResolver):
            return await self._resolver.addresses(host, port)
        return [await self._resolver.resolve(host, port)]

"""Connections to other registries where the operator permits them, and to no address that was not looked at (LEG-1108).

A name is looked up once for each connection, and what is connected to is the address that was found to be permitted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from projections.subscriptions import trust
from projections.subscriptions.contract import Resolver, Unreachable


def transport(resolver: Resolver) -> httpx.HTTPTransport:
    """What a client reaches others through. It goes through no proxy, which would look names up by itself."""
    context = trust.of(resolver)
    made = httpx.HTTPTransport(verify=context, trust_env=False)
    made._pool = httpcore.ConnectionPool(ssl_context=context, network_backend=_Guarded(resolver))
    return made


class _Guarded(httpcore.NetworkBackend):
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._system = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            address = asyncio.run(self._resolver.resolve(host, port))
        except (Unreachable, OSError) as error:
            raise httpcore.ConnectError(str(error)) from None
        return self._system.connect_tcp(address, port, timeout, local_address, socket_options)

"""The interface for checked name lookups, as connecting components see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

#: Seconds to connect to one address of a host that has others.
ADDRESS_SECONDS: Final = 5.0


class ForbiddenAddress(Exception):
    """An address that must not be connected to (SUB-901 to 903); the message contains no internal address."""


class Resolver(Protocol):
    """Looks up the address of a sink and refuses forbidden ones; sinks connect only to the returned address."""

    async def resolve(self, host: str, port: int) -> str:
        """One checked IP address. Raises: ForbiddenAddress; OSError when the name has none."""


@runtime_checkable
class MultiAddressResolver(Protocol):
    """A resolver that returns all checked addresses of a host, best first."""

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Raises: as `Resolver` does."""


async def addresses_of(resolver: Resolver, host: str, port: int) -> Sequence[str]:
    """The addresses of a host to try in order, at least one. Raises: as `Resolver` does."""
    if isinstance(resolver, MultiAddressResolver):
        return await resolver.addresses(host, port)
    return [await resolver.resolve(host, port)]

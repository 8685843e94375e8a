"""The interface for checked name lookups, as connecting components see it."""

from __future__ import annotations

from typing import Protocol


class ForbiddenAddress(Exception):
    """An address that must not be connected to (SUB-901 to 903); the message contains no internal address."""


class Resolver(Protocol):
    """Looks up the address of a sink and refuses forbidden ones; sinks connect only to the returned address."""

    async def resolve(self, host: str, port: int) -> str:
        """One checked IP address. Raises: ForbiddenAddress; OSError when the name has none."""

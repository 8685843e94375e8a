"""Where a connection may go, as those who connect see it."""

from __future__ import annotations

from typing import Protocol


class ForbiddenAddress(Exception):
    """An address that nobody may be sent to (SUB-901 to 903); the message names no internal address."""


class Resolver(Protocol):
    """Looks up where a sink is, and refuses what is not allowed; sinks connect to what it gives and nowhere else."""

    async def resolve(self, host: str, port: int) -> str:
        """One checked IP address. Raises: ForbiddenAddress; OSError where the name has none."""

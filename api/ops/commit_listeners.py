"""Forwards each commit to several listeners."""

from __future__ import annotations

from commands.command_bus import CommitListener


class CommitListeners:
    """Calls each listener in order, from the thread that commits."""

    def __init__(self, *others: CommitListener) -> None:
        self._listeners = list(others)

    def add(self, other: CommitListener) -> None:
        """Adds a listener for all later commits."""
        self._listeners.append(other)

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """See `commands.command_bus.CommitListener`."""
        for other in self._listeners:
            other.committed(commands, refused, seconds)

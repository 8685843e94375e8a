"""Forwards each commit to several listeners."""

from __future__ import annotations

from annals.commands.command_bus import CommitListener


class CommitListeners:
    """Calls each listener in order, from the thread that commits."""

    def __init__(self, *listeners: CommitListener) -> None:
        self._listeners = list(listeners)

    def add(self, listener: CommitListener) -> None:
        """Adds a listener for all later commits."""
        self._listeners.append(listener)

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """See `annals.commands.command_bus.CommitListener`."""
        for listener in self._listeners:
            listener.committed(commands, refused, seconds)

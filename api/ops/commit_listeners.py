"""Many who are told of each commit, as one."""

from __future__ import annotations

from commands.command_bus import CommitListener


class CommitListeners:
    """Tells each of the others, in their order, from the thread that commits."""

    def __init__(self, *others: CommitListener) -> None:
        self._others = list(others)

    def add(self, other: CommitListener) -> None:
        """Has another one told from now on."""
        self._others.append(other)

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """See `commands.command_bus.CommitListener`."""
        for other in self._others:
            other.committed(commands, refused, seconds)

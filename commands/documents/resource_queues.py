"""Commands that keep taking the answers from under each other stand in line, one behind the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock

from commands.pending_command import PendingCommand
from domain.decisions.commands import Command
from domain.values import xid as xids


class ResourceQueues:
    """A line for each Resource, and for whatever else commands name.

    A new Version is compared with the newest one, so that of many writers at once the first makes all the others ask
    again. In a line, only the first asks; the next one goes on when it has its outcome.
    released: takes a command that is the first now, in the thread that tells the outcome of the one before it.
    """

    def __init__(self, released: Callable[[PendingCommand], None]) -> None:
        self._released = released
        self._lock = Lock()
        self._lines: dict[str, deque[PendingCommand]] = {}

    def admits(self, asked: PendingCommand) -> bool:
        """Whether a command is the first of its line; otherwise it is kept until it is."""
        name = _queue_name(asked.command)
        with self._lock:
            line = self._lines.setdefault(name, deque())
            if line and line[0].future is asked.future:
                return True
            line.append(asked)
            if len(line) > 1:
                return False
        asked.future.add_done_callback(lambda _: self._next(name))
        return True

    def _next(self, name: str) -> None:
        """The first of a line has its outcome."""
        with self._lock:
            line = self._lines[name]
            line.popleft()
            if not line:
                del self._lines[name]
                return
            first = line[0]
        first.future.add_done_callback(lambda _: self._next(name))
        self._released(first)


def _queue_name(command: Command) -> str:
    return xids.stream(xids.join(*xids.segments(getattr(command, "xid", xids.REGISTRY))[:4]))

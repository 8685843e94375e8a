"""Queues commands that keep invalidating each other's check results, so that they run one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final

from annals.commands.pending_command import PendingCommand
from annals.domain.confluent.subjects import Subject
from annals.domain.decisions.commands import SubmittedCommand
from annals.domain.values import xid as xids

#: After this number of unsuccessful decisions of the first command of a queue, new commands wait behind it. Otherwise
#: they could invalidate its results for ever.
PATIENT_ATTEMPTS: Final = 5


class ResourceQueues:
    """A queue for each Resource, and for any other entity that commands name.

    A new Version is compared with the newest one. Of many concurrent writers, the first one therefore invalidates the
    check results of all others. In a queue, only the first command is checked; the next one continues when the first
    has its outcome.
    on_release: receives a command that is now the first, in the thread that delivers the outcome of the one before it.
    """

    def __init__(self, on_release: Callable[[PendingCommand], None]) -> None:
        self._on_release = on_release
        self._lock = Lock()
        self._queues: dict[str, deque[PendingCommand]] = {}

    def enqueue(self, pending: PendingCommand) -> bool:
        """Whether a command is the first of its queue; otherwise it stays in the queue until it is."""
        name = _queue_name(pending.command)
        with self._lock:
            queue = self._queues.setdefault(name, deque())
            if queue and queue[0].future is pending.future:
                queue[0] = pending
                return True
            queue.append(pending)
            if len(queue) > 1:
                return False
        pending.future.add_done_callback(lambda _: self._release_next(name))
        return True

    def enqueue_new(self, pending: PendingCommand) -> bool:
        """Whether a command that was not decided yet stays in a queue, because the first one there has to go first."""
        with self._lock:
            queue = self._queues.get(_queue_name(pending.command)) if self._queues else None
            if queue is None or queue[0].attempts < PATIENT_ATTEMPTS or queue[0].future is pending.future:
                return False
            queue.append(pending)
            return True

    def _release_next(self, name: str) -> None:
        """Removes the first command of a queue, which has its outcome, and releases the next one.

        Also those after it that were cancelled: a callback of such a future would be called at once, and the callbacks
        of many would be calls within calls.
        """
        while (first := self._next(name)) is not None and first.future.cancelled():
            self._on_release(first)
        if first is not None:
            first.future.add_done_callback(lambda _: self._release_next(name))
            self._on_release(first)

    def _next(self, name: str) -> PendingCommand | None:
        """Removes the first command of a queue; returns the next one, None if there is none."""
        with self._lock:
            queue = self._queues[name]
            queue.popleft()
            if queue:
                return queue[0]
            del self._queues[name]
            return None


def _queue_name(command: SubmittedCommand) -> str:
    """The Resource of a command; for one of Confluent's API, which names the Group, with the subject."""
    stream = xids.stream(xids.resource_of(getattr(command, "xid", xids.REGISTRY)))
    subject = getattr(command, "subject", None)
    return f"{stream} {subject.name}" if isinstance(subject, Subject) else stream

"""Commands for the same Resource follow each other, whatever becomes of those that wait."""

from __future__ import annotations

import sys
from concurrent.futures import Future

from annals.commands.documents.resource_queues import ResourceQueues
from annals.commands.pending_command import PendingCommand
from annals.domain.decisions.commands import DeleteEntities


def test_cancelled_commands_are_passed_over() -> None:
    """As many as are left when a server stops; each is released, because whoever closes the bus waits for all."""
    released: list[PendingCommand] = []
    queues = ResourceQueues(released.append)
    futures: list[Future[object]] = [Future() for _ in range(sys.getrecursionlimit() + 2)]
    first, *others = (PendingCommand(DeleteEntities("/dirs/d"), future=future) for future in futures)
    assert queues.enqueue(first)
    assert not any(map(queues.enqueue, others))
    for future in futures[1:-1]:
        future.cancel()
    futures[0].set_result(None)
    assert released == others
    futures[-1].set_result(None)
    assert queues.enqueue(PendingCommand(DeleteEntities("/dirs/d")))

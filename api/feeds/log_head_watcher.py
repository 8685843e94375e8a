"""Waiting for the log to grow: of commits of this process one hears, those of other processes are looked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

#: Seconds between looks at the log, for what other processes commit; none while nobody waits.
POLL_SECONDS: Final = 0.1
#: Seconds between two looks at least. Under a load of writes all who wait go on together, with several commits in one
#: piece, instead of each of them for each commit.
MIN_POLL_SECONDS: Final = 0.01


class LogHeadWatcher:
    """All those of one event loop who wait for the log to grow: they share one look at it.

    Waiting belongs to the loop; `committed` and `stop` may be called from any thread.
    """

    def __init__(self) -> None:
        self._head: Callable[[], int] = lambda: 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[asyncio.Future[bool], int] = {}
        self._looking: asyncio.Task[None] | None = None
        self._next: asyncio.TimerHandle | None = None
        self._looked = -MIN_POLL_SECONDS
        self.stopped = False

    def follow(self, head: Callable[[], int]) -> None:
        """Begins. head: looks up the position of the log's last event, in well under a millisecond."""
        self._head = head
        self._next = None
        self.stopped = False

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Has those who wait look at the log soon; see `commands.command_bus.CommitListener`."""
        self._in_loop(self._soon)

    def stop(self) -> None:
        """Nobody waits any more, now or later: the server ends."""
        self.stopped = True
        self._in_loop(self._let_go)

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def beyond(self, position: int, seconds: float, gone: asyncio.Future[None]) -> bool:
        """Whether the log has grown beyond a position before the time was up.

        gone: is done once the reader has left, which ends the wait as `stop` does.
        """
        if self.stopped or gone.done():
            return False
        self._loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = self._loop.create_future()

        def give_up(_: object = None) -> None:
            if not waiter.done():
                waiter.set_result(False)

        self._waiting[waiter] = position
        gone.add_done_callback(give_up)
        over = self._loop.call_later(seconds, give_up)
        try:
            self._soon()  # once commits are heard of: one before that would go unnoticed
            self._looking = self._looking or asyncio.create_task(self._keep_looking())
            return await waiter  # of what asyncio has for several at once, each costs as much as all the rest here
        finally:
            over.cancel()
            gone.remove_done_callback(give_up)
            del self._waiting[waiter]

    async def _keep_looking(self) -> None:
        try:
            while self._waiting:
                self._soon()
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._looking = None

    def _soon(self) -> None:
        if self._next is None and self._loop is not None:
            self._next = self._loop.call_at(self._looked + MIN_POLL_SECONDS, self._look)

    def _look(self) -> None:
        self._next = None
        if not self._waiting or self._loop is None:
            return
        self._looked = self._loop.time()
        head = self._head()
        for waiter, position in self._waiting.items():
            if head > position and not waiter.done():
                waiter.set_result(True)

    def _let_go(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(False)

    def _in_loop(self, work: Callable[[], None]) -> None:
        if self._waiting and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(work)

"""Waits for the log to grow. Commits of this process wake the watcher; it polls for commits of other processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from annals.commands.store.database.driver_errors import driver_errors

#: Seconds between polls for commits of other processes. Without a waiting reader there are no polls.
POLL_SECONDS: Final = 0.1
#: Minimum seconds between two polls. Under write load all waiting readers wake together and receive several commits in
#: one piece, instead of each reader waking for each commit.
MIN_POLL_SECONDS: Final = 0.01
_LOG: Final = logging.getLogger("annals.store")


class LogHeadWatcher:
    """Waits for the log to grow, for all readers of one event loop; they share one poll.

    The loop runs the waits. Any thread may call `committed` and `stop`.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: dict[asyncio.Future[bool], int] = {}
        self._poll_task: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()
        self.is_stopped = False

    def start(self, head: Callable[[], Awaitable[int]]) -> None:
        """Starts watching. head: reads the position of the log's last event without blocking the loop."""
        self._read_head = head
        self._has_news = asyncio.Event()
        self.is_stopped = False

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Makes waiting readers check the log soon; see `annals.commands.command_bus.CommitListener`."""
        self._in_loop(self._has_news.set)

    def stop(self) -> None:
        """Ends all waits, now and later, because the server is shutting down."""
        self.is_stopped = True
        self._in_loop(self._release_waiters)

    @property
    def waiting(self) -> int:
        """The number of waiting readers."""
        return len(self._waiters)

    async def wait_beyond(self, position: int, seconds: float, client_gone: asyncio.Future[None]) -> bool:
        """Whether the log grew past a position within so many seconds.

        client_gone: done as soon as the client has disconnected, which ends the wait, as `stop` does.
        """
        if self.is_stopped or client_gone.done():
            return False
        self._loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = self._loop.create_future()

        def give_up(_: object = None) -> None:
            if not waiter.done():
                waiter.set_result(False)

        self._waiters[waiter] = position
        client_gone.add_done_callback(give_up)
        timer = self._loop.call_later(seconds, give_up)
        try:
            self._has_news.set()  # after registration: a commit before it would not wake this reader
            self._poll_task = self._poll_task or asyncio.create_task(self._poll())
            return await waiter  # asyncio.wait would cost as much as the rest of this function
        finally:
            timer.cancel()
            client_gone.remove_done_callback(give_up)
            del self._waiters[waiter]

    async def _poll(self) -> None:
        """Checks the log as long as readers wait, one check at a time: the database may be slow."""
        try:
            while self._waiters:
                self._has_news.clear()
                await self._check_head()
                await asyncio.sleep(MIN_POLL_SECONDS)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._has_news.wait(), POLL_SECONDS - MIN_POLL_SECONDS)
        finally:
            self._poll_task = None

    async def _check_head(self) -> None:
        try:
            head = await self._read_head()
        except driver_errors():  # the readers go on waiting, and learn of the outage with their next request
            return
        except Exception:  # all readers share this poll
            _LOG.exception("the end of the log could not be read")
            return
        for waiter, position in self._waiters.items():
            if head > position and not waiter.done():
                waiter.set_result(True)

    def _release_waiters(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(False)

    def _in_loop(self, callback: Callable[[], None]) -> None:
        if self._waiters and self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(callback)

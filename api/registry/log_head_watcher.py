"""Waits for the log to grow. Commits of this process wake the watcher; it polls for commits of other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

#: Seconds between polls for commits of other processes. Without a waiting reader there are no polls.
POLL_SECONDS: Final = 0.1
#: Minimum seconds between two polls. Under write load all waiting readers wake together and receive several commits in
#: one piece, instead of each reader waking for each commit.
MIN_POLL_SECONDS: Final = 0.01


class LogHeadWatcher:
    """Waits for the log to grow, for all readers of one event loop; they share one poll.

    The loop runs the waits. Any thread may call `committed` and `stop`.
    """

    def __init__(self) -> None:
        self._read_head: Callable[[], int] = lambda: 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: dict[asyncio.Future[bool], int] = {}
        self._poll_task: asyncio.Task[None] | None = None
        self._next_check: asyncio.TimerHandle | None = None
        self._last_check = -MIN_POLL_SECONDS
        self.is_stopped = False

    def start(self, head: Callable[[], int]) -> None:
        """Starts watching. head: returns the position of the log's last event, in well under a millisecond."""
        self._read_head = head
        self._next_check = None
        self.is_stopped = False

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Makes waiting readers check the log soon; see `annals.commands.command_bus.CommitListener`."""
        self._in_loop(self._schedule_check)

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
            self._schedule_check()  # after registration: a commit before it would not wake this reader
            self._poll_task = self._poll_task or asyncio.create_task(self._poll())
            return await waiter  # asyncio.wait would cost as much as the rest of this function
        finally:
            timer.cancel()
            client_gone.remove_done_callback(give_up)
            del self._waiters[waiter]

    async def _poll(self) -> None:
        try:
            while self._waiters:
                self._schedule_check()
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._poll_task = None

    def _schedule_check(self) -> None:
        if self._next_check is None and self._loop is not None:
            self._next_check = self._loop.call_at(self._last_check + MIN_POLL_SECONDS, self._check_head)

    def _check_head(self) -> None:
        self._next_check = None
        if not self._waiters or self._loop is None:
            return
        self._last_check = self._loop.time()
        head = self._read_head()
        for waiter, position in self._waiters.items():
            if head > position and not waiter.done():
                waiter.set_result(True)

    def _release_waiters(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(False)

    def _in_loop(self, callback: Callable[[], None]) -> None:
        if self._waiters and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback)

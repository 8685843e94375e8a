"""Answers made in a worker thread, chunk by chunk, and sent from the event loop.

The thread stays at most a few chunks ahead of the client, so memory does not grow with the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import Any, Final, TypeVar

T = TypeVar("T")
#: What a job does: gives the answer's head first, then its body.
Job = Callable[[], Generator[Any, None, None]]

#: How many chunks wait for a slow client at most.
AHEAD: Final = 4


class Streams:
    """A pool of threads that make answers."""

    def __init__(self, threads: int = 8) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="annals-reader")

    async def start(self, job: Job) -> tuple[Any, AsyncGenerator[bytes, None]]:
        """The first thing that a job gives, and a generator of the rest. Raises: what the job raises before it."""
        items = self._run(job)
        head = await anext(items)
        return head, items

    def close(self) -> None:
        """Waits for the jobs that run."""
        self._pool.shutdown()

    async def _run(self, job: Job) -> AsyncGenerator[Any, None]:
        relay = _Relay(asyncio.get_running_loop())
        running = asyncio.wrap_future(self._pool.submit(relay.fill, job))
        try:
            while (item := await relay.take()) is not _END:
                yield item
            await running
        finally:
            relay.stop()


_END: Final = object()


class _Relay:
    """A bounded queue from one thread to one coroutine."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._room = Semaphore(AHEAD)
        self._stopped = False

    def fill(self, job: Job) -> None:
        """Runs the job, in its thread, for as long as somebody listens."""
        items = job()
        try:
            for item in items:
                self._room.acquire()
                if self._stopped:
                    return
                self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
        finally:
            items.close()
            self._loop.call_soon_threadsafe(self._queue.put_nowait, _END)

    async def take(self) -> Any:
        item = await self._queue.get()
        self._room.release()
        return item

    def stop(self) -> None:
        self._stopped = True
        self._room.release()

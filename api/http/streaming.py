"""Responses that a worker thread makes in chunks and the event loop sends.

The thread is at most a few chunks ahead of the client, so memory use does not depend on the size of the response.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Semaphore
from typing import Any, Final, TypeVar

T = TypeVar("T")
#: A job yields the head of the response first, then its body.
Job = Callable[[], Generator[Any, None, None]]

#: Maximum number of chunks that wait for a slow client.
MAX_WAITING_CHUNKS: Final = 4
#: Number of concurrent responses. Each holds a database connection, and a slow client holds it for long.
THREADS: Final = 16
#: Seconds that a response waits for a client that reads nothing, so that the client cannot hold a thread forever.
STALL_SECONDS: Final = 20.0


class ClientStalled(Exception):
    """The client has read nothing for too long."""


class StreamingPool:
    """A pool of threads that make responses."""

    def __init__(self, threads: int = THREADS, stall_seconds: float = STALL_SECONDS) -> None:
        """stall_seconds: how long a job waits for a client that reads nothing; then its response is cut off."""
        self._stall_seconds = stall_seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="annals-reader")

    async def start(self, job: Job) -> tuple[Any, AsyncGenerator[bytes, None]]:
        """The head that a job yields, and a generator of the rest. Raises: what the job raises before it yields."""
        items = self._run(job)
        head = await anext(items)
        return head, items

    def close(self) -> None:
        """Waits for the running jobs."""
        self._pool.shutdown()

    async def _run(self, job: Job) -> AsyncGenerator[Any, None]:
        chunk_queue = _ChunkQueue(asyncio.get_running_loop(), self._stall_seconds)
        future = asyncio.wrap_future(self._pool.submit(copy_context().run, chunk_queue.fill, job))
        future.add_done_callback(_retrieve_exception)
        try:
            while (item := await chunk_queue.get()) is not _END_OF_ITEMS:
                yield item
            await future
        finally:
            chunk_queue.stop()


def _retrieve_exception(future: asyncio.Future[None]) -> None:
    """Retrieves the exception of a job, because no other code does after the client has disconnected."""
    if not future.cancelled():
        future.exception()


_END_OF_ITEMS: Final = object()


class _ChunkQueue:
    """A bounded queue from one thread to one coroutine.

    The thread waits until the head is taken. So the loop sends the head and what came with it before the job continues,
    for example with ending its transaction: both share one interpreter lock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, stall_seconds: float) -> None:
        self._loop = loop
        self._stall_seconds = stall_seconds
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._room = Semaphore(0)
        self._has_begun = False
        self._is_stopped = False

    def fill(self, job: Job) -> None:
        """Runs the job in its thread, while the coroutine still takes items.

        Raises: ClientStalled, and what the job raises.
        """
        items = job()
        try:
            for item in items:
                self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
                if not self._room.acquire(timeout=self._stall_seconds):
                    raise ClientStalled
                if self._is_stopped:
                    return
        finally:
            items.close()
            self._loop.call_soon_threadsafe(self._queue.put_nowait, _END_OF_ITEMS)

    async def get(self) -> Any:
        item = await self._queue.get()
        self._room.release(1 if self._has_begun else MAX_WAITING_CHUNKS)
        self._has_begun = True
        return item

    def stop(self) -> None:
        self._is_stopped = True
        self._room.release()

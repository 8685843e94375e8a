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
#: Seconds that a response waits for a client that reads nothing, so that the client cannot hold a thread forever.
STALL_SECONDS: Final = 20.0


class ClientStalled(Exception):
    """The client has read nothing for too long."""


class StreamStopped(Exception):
    """The pool was closed before the response was complete."""


class StreamingPool:
    """A pool of threads that make responses."""

    def __init__(self, threads: int, stall_seconds: float = STALL_SECONDS) -> None:
        """threads: number of concurrent responses. A slow client holds one, and its connection, for long.
        stall_seconds: how long a job waits for a client that reads nothing; then its response is cut off.
        """
        self._stall_seconds = stall_seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="annals-reader")
        self._chunk_queues: set[_ChunkQueue] = set()

    async def start(self, job: Job) -> tuple[Any, AsyncGenerator[bytes, None]]:
        """The head that a job yields, and a generator of the rest. Raises: what the job raises before it yields."""
        items = self._run(job)
        head = await anext(items)
        return head, items

    def close(self) -> None:
        """Stops the running jobs, and waits for them; responses that are not complete raise StreamStopped.

        Without that, jobs whose clients read nothing would delay the end of the process.
        """
        for chunk_queue in list(self._chunk_queues):
            chunk_queue.stop()
        self._pool.shutdown()

    async def _run(self, job: Job) -> AsyncGenerator[Any, None]:
        chunk_queue = _ChunkQueue(asyncio.get_running_loop(), self._stall_seconds)
        future = asyncio.wrap_future(self._pool.submit(copy_context().run, chunk_queue.fill, job))
        future.add_done_callback(_retrieve_exception)
        self._chunk_queues.add(chunk_queue)
        try:
            while (item := await chunk_queue.get()) is not _END_OF_ITEMS:
                yield item
            await future
            if chunk_queue.is_stopped:
                raise StreamStopped
        finally:
            self._chunk_queues.discard(chunk_queue)
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
        self.is_stopped = False

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
                if self.is_stopped:
                    return
        finally:
            try:
                items.close()
            finally:  # without the end, the response would wait for ever
                self._loop.call_soon_threadsafe(self._queue.put_nowait, _END_OF_ITEMS)

    async def get(self) -> Any:
        item = await self._queue.get()
        self._room.release(1 if self._has_begun else MAX_WAITING_CHUNKS)
        self._has_begun = True
        return item

    def stop(self) -> None:
        """Ends the job at its next item."""
        self.is_stopped = True
        self._room.release()

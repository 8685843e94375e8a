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
MAX_WAITING_CHUNKS: Final = 4
#: Answers that are made at a time. Each holds a connection to the database, and those of slow clients hold it long.
THREADS: Final = 16
#: For how many seconds an answer waits for a client that takes nothing of it, so that it cannot keep a thread for ever.
STALL_SECONDS: Final = 20.0


class ClientStalled(Exception):
    """The client has taken nothing for too long."""


class StreamingPool:
    """A pool of threads that make answers."""

    def __init__(self, threads: int = THREADS, patience: float = STALL_SECONDS) -> None:
        """patience: seconds that a job waits for a client that takes nothing; then its answer breaks off."""
        self._patience = patience
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
        relay = _ChunkQueue(asyncio.get_running_loop(), self._patience)
        running = asyncio.wrap_future(self._pool.submit(relay.fill, job))
        running.add_done_callback(_retrieve_exception)
        try:
            while (item := await relay.take()) is not _END:
                yield item
            await running
        finally:
            relay.stop()


def _retrieve_exception(running: asyncio.Future[None]) -> None:
    """Looks at how a job ended, because nobody else does once the client has gone."""
    if not running.cancelled():
        running.exception()


_END: Final = object()


class _ChunkQueue:
    """A bounded queue from one thread to one coroutine.

    The thread rests until the answer's head was taken, so that the loop sends what came with it before whatever the job
    does next, as ending its transaction: there is one interpreter for both.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, patience: float) -> None:
        self._loop = loop
        self._patience = patience
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._room = Semaphore(0)
        self._begun = False
        self._stopped = False

    def fill(self, job: Job) -> None:
        """Runs the job, in its thread, for as long as somebody listens.

        Raises: ClientStalled, and what the job raises.
        """
        items = job()
        try:
            for item in items:
                self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
                if not self._room.acquire(timeout=self._patience):
                    raise ClientStalled
                if self._stopped:
                    return
        finally:
            items.close()
            self._loop.call_soon_threadsafe(self._queue.put_nowait, _END)

    async def take(self) -> Any:
        item = await self._queue.get()
        self._room.release(1 if self._begun else MAX_WAITING_CHUNKS)
        self._begun = True
        return item

    def stop(self) -> None:
        self._stopped = True
        self._room.release()

"""Threads for blocking calls to the store, outside the event loop of deliveries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import make_url

from annals.commands.store.database.known_log_end import known_log_end
from annals.projections.database.connections import ReadConnection, connect
from annals.projections.log.reader import Log

T = TypeVar("T")


class WorkerThread:
    """A thread that runs one call after the other."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"annals-deliveries-{name}")

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """The result of a call in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)

    def close(self) -> None:
        """Ends the thread after its current call."""
        self._pool.shutdown(wait=True)


class ReaderThread(WorkerThread):
    """A thread with a read connection to the store, which is reopened after a failure."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name)
        self._url = url
        self._is_file = make_url(url).get_backend_name() == "sqlite"
        self._known_end = known_log_end(make_url(url))
        self._reader: ReadConnection | None = None

    async def read(self, work: Callable[..., T], *arguments: object) -> T:
        """The result of reading the log.

        A SQLite file is read directly: that takes less time than switching threads, and writers never block its
        readers. A server may block, so it is read in the thread.
        """
        return work(*arguments) if self._is_file else await self.run(work, *arguments)

    def database(self) -> ReadConnection:
        """The connection, reopened if it is unusable."""
        if self._reader is None or not self._reader.is_open:
            self._reader = connect(self._url)
        return self._reader

    def log(self) -> Log:
        """The log, over the connection."""
        return Log(self.database())

    def log_end(self) -> int:
        """The position at which the log ends; from now on the process notices if the log loses it."""
        end = self.log().head()
        self._known_end.note(end.last, end.chain)
        return end.last

    def close(self) -> None:
        super().close()
        if self._reader is not None:
            self._reader.close()

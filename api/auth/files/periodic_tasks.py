"""What a server does every few seconds: it checks its files for changes, and writes what it has collected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from annals.api.auth.files.watched_files import WatchedFiles

T = TypeVar("T")
_LOG: Final = logging.getLogger("annals")
#: Seconds between the end of one round and the start of the next.
INTERVAL: Final = 2.0


class PeriodicTasks:
    """Tasks that are repeated one after the other while the server runs."""

    def __init__(self) -> None:
        self._files: list[WatchedFiles[Any]] = []
        self._tasks: list[Callable[[], Awaitable[None]]] = []

    def watch(self, files: WatchedFiles[T]) -> WatchedFiles[T]:
        """The same files, which are checked from now on."""
        self._files.append(files)
        self.repeat(lambda: asyncio.to_thread(files.check))
        return files

    def repeat(self, task: Callable[[], Awaitable[None]]) -> None:
        """Adds a task. If it fails, that is logged, and it is repeated all the same."""
        self._tasks.append(task)

    async def run(self) -> None:
        """Repeats the tasks until it is cancelled."""
        while self._tasks:
            await asyncio.sleep(INTERVAL)
            await self.run_once()

    async def run_once(self) -> None:
        """Does each task once."""
        for task in self._tasks:
            try:
                await task()
            except Exception:
                _LOG.exception("a periodic task of the server failed; it is tried again")

    def file_errors(self) -> dict[str, bool]:
        """Whether each file is broken, by its path."""
        return {files.name: files.has_error for files in self._files}

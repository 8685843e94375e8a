"""Lets processes that write to one SQLite file take turns.

SQLite has no queue for its write lock: a process that waits looks again after pauses of up to 100 milliseconds, and may
miss the moment many times while another process writes. An operating system's lock wakes those that wait.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile


class WriteTurns:
    """The turns of a process and of its forks. The system ends the turn of a process that is killed."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115, it is open as long as the process

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Holds the turn during the block; for one thread of each process at a time."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

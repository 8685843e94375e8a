"""Content of files that follows their changes (ACC-19).

A file that cannot be read or parsed leaves the content as it was; a log line and a metric say so until it can be.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_LOG: Final = logging.getLogger("annals.callers")

#: What changes with a file: its inode, its times, its size. None for a file that is not there.
Stamp = tuple[int, int, int, int] | None


class WatchedFiles(Generic[T]):
    """Content that is made of one file, or of several together. paths: the first one names all of them.

    content: the newest that could be made. Raises: ValueError at the start, if `load` does.
    """

    def __init__(self, paths: tuple[str, ...], load: Callable[[], T]) -> None:
        self._paths = paths
        self._load = load
        self._stamps = self._read_stamps()
        self.content = load()
        self.has_error = False

    @property
    def name(self) -> str:
        """The path of the first file."""
        return self._paths[0]

    def current(self) -> T:
        """The content. It costs nothing."""
        return self.content

    def check(self) -> None:
        """Makes the content again if a file has changed. Blocks."""
        stamps = self._read_stamps()
        if stamps == self._stamps:
            return
        self._stamps = stamps
        try:
            self.content = self._load()
        except Exception as error:  # a broken file must leave the server as it is
            self.has_error = True
            _LOG.error("%s has changed and cannot be used, so its old content stays: %s", self.name, error)
        else:
            self.has_error = False
            _LOG.info("%s has changed and is in use", self.name)

    def _read_stamps(self) -> tuple[Stamp, ...]:
        return tuple(map(_stamp, self._paths))


def _stamp(path: str) -> Stamp:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size

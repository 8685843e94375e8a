"""Notices that the file of a SQLite store was removed or replaced while the process has it open.

SQLite does not notice. Writes to a removed file get lost. A new connection to a replaced file would apply the
write-ahead log of the old file to the new one, and so damage it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final
from urllib.parse import quote

from annals.commands.store.database.store_lost import StoreLost

_LOG: Final = logging.getLogger("annals.store")
_ADVICE: Final = "the file of the database was removed or replaced; restart the server"

#: Device and inode.
_Identity = tuple[int, int]


class StoreFileChanged(StoreLost):
    """The path of the database has no file any more, or another one than when the process opened it."""

    def __init__(self) -> None:
        super().__init__(_ADVICE)


@dataclass
class _OpenFile:
    """A file that the process has open. users: the number of engines that use it. is_reported: whether a line of the
    log says that it has changed."""

    identity: _Identity | None
    users: int = 0
    is_reported: bool = False


_LOCK: Final = Lock()
#: All engines of a process share what it has opened: one that opens later must not open or create another file. The
#: keys are absolute paths. Links are not resolved, so a link to another file counts as another file.
_OPEN_FILES: Final[dict[Path, _OpenFile]] = {}


def require_unchanged(path: str) -> None:
    """Raises: StoreFileChanged if the process has opened another file at a path. Cost: one system call."""
    _require_unchanged(Path(path).absolute())


def existing_file(path: str) -> str:
    """The URI of a file for SQLite, which otherwise creates a new one in place of one that was removed."""
    return path if path.startswith("file:") else f"file:{quote(path)}?mode=rw"


class StoreFile:
    """The file of one engine.

    path: None for a database that is not simply a file; it is never checked. when_changed: called before each error.
    """

    def __init__(self, path: str | None, when_changed: Callable[[], None] = lambda: None) -> None:
        self._path = None if path is None else Path(path).absolute()
        self._when_changed = when_changed
        self._is_user = False

    def has_changed(self) -> bool:
        """Whether another file is at the path, or none."""
        return self._path is not None and _has_changed(self._path)

    def require_unchanged(self) -> None:
        """Raises: StoreFileChanged. Cost: one system call."""
        if self._path is None:
            return
        try:
            _require_unchanged(self._path)
        except StoreFileChanged:
            self._when_changed()
            raise

    def note_opened(self) -> None:
        """Remembers the file that a connection has opened, until `forget`. Raises: StoreFileChanged if it is another
        one than before."""
        if self._path is None:
            return
        self.require_unchanged()
        with _LOCK:
            if not self._is_user:
                open_file = _OPEN_FILES.setdefault(self._path, _OpenFile(_identity(self._path)))
                open_file.users += 1
                self._is_user = True

    def forget(self) -> None:
        """Forgets the file, because all connections of the engine are closed; other engines may still use it."""
        with _LOCK:
            if self._path is not None and self._is_user:
                self._is_user = False
                _OPEN_FILES[self._path].users -= 1
                if not _OPEN_FILES[self._path].users:
                    del _OPEN_FILES[self._path]


def _require_unchanged(path: Path) -> None:
    """As `require_unchanged`, for an absolute path; the first error is logged."""
    if not _has_changed(path):
        return
    open_file = _OPEN_FILES.get(path)
    if open_file is not None and not open_file.is_reported:
        open_file.is_reported = True
        _LOG.error("the store cannot be used: %s (%s)", _ADVICE, path)
    raise StoreFileChanged


def _has_changed(path: Path) -> bool:
    open_file = _OPEN_FILES.get(path)
    return open_file is not None and open_file.identity != _identity(path)


def _identity(path: Path) -> _Identity | None:
    """Device and inode of the file; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino

"""The staging folder between Spark and the database: a named one, or a temporary one of this process.

A killed process leaves its folder behind. It held a lock on a file in the folder, which the kernel released with the
process. So the next process recognises unused folders by their free locks, and removes them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PREFIX: Final = "annals-rebuild-"
_LOCK_FILE: Final = "lock"
_STAGE_FOLDER: Final = "stage"


@contextmanager
def staging_folder(folder_uri: str | None = None) -> Iterator[str]:
    """The URI of a folder that does not exist yet: `folder_uri`, or that of a temporary one of this process.

    The temporary folder is below the system's folder for those, and is removed at the end. Folders that killed
    processes left there are removed at the beginning.
    """
    if folder_uri is not None:
        yield folder_uri
        return
    _remove_abandoned(Path(tempfile.gettempdir()))
    folder, lock = _make_folder()
    try:
        yield (folder / _STAGE_FOLDER).as_uri()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _make_folder() -> tuple[Path, int]:
    """A new folder, and the lock on it that this process holds."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if (lock := _lock_folder(folder)) is not None:
            return folder, lock


def _remove_abandoned(temporary_root: Path) -> None:
    for folder in temporary_root.glob(f"{_PREFIX}*"):
        if folder.is_symlink() or not _is_staging_folder(folder) or (lock := _lock_folder(folder)) is None:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _is_staging_folder(folder: Path) -> bool:
    try:
        return {path.name for path in folder.iterdir()} <= {_LOCK_FILE, _STAGE_FOLDER}
    except OSError:  # another user's, or no folder
        return False


def _lock_folder(folder: Path) -> int | None:
    """The lock of a folder; None while another process holds it, or after one removed the folder."""
    try:
        lock = os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    if not os.fstat(lock).st_nlink:
        os.close(lock)
        return None
    return lock

"""The lock that lets one process at a time rebuild the read model of a store."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from annals.commands.store.log import Store

# The oid of the log's table is the write lock, so its negative is used here.
_REBUILD_LOCK_KEY: Final = "-('log'::regclass::oid::bigint)"


@contextmanager
def rebuild_lock(store: Store) -> Iterator[None]:
    """Held by one rebuild at a time, because each drops leftover tables."""
    if store.engine.dialect.name != "postgresql":
        with _file_lock(Path(f"{store.engine.url.database}-rebuild")):
            yield
        return
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({_REBUILD_LOCK_KEY})")
        try:
            yield
        finally:
            connection.exec_driver_sql(f"SELECT pg_advisory_unlock({_REBUILD_LOCK_KEY})")


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """The lock of a file, which exists while the lock is held. It is free if the process that held it dies."""
    is_held = False
    while not is_held:
        with path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if is_held := _is_at(path, file):  # otherwise the last holder has removed it
                try:
                    yield
                finally:
                    path.unlink()


def _is_at(path: Path, file: IO[str]) -> bool:
    """Whether a path leads to an open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    return False

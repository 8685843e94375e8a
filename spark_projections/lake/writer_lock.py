"""One writer of a lake at a time, where the lake is a folder of this machine.

Elsewhere the transactions of the tables alone decide between two writers. Here they do not suffice: a local filesystem
replaces an existing file when another one is renamed to it, so a transaction takes its place in two steps.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from annals.spark_projections.hadoop_paths import hadoop_folder
from annals.spark_projections.lake.formats.contract import LakeBusy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def writer_lock(spark: SparkSession, uri: str) -> Iterator[None]:
    """Keeps others from writing to a lake while the block runs. The end of the process ends the lock.

    Makes the folder, and removes it if it is empty afterwards, as when the log is refused.

    Raises: LakeBusy where another process, or another block of this one, writes.
    """
    filesystem, root, _ = hadoop_folder(spark, uri)
    location = filesystem.makeQualified(root).toUri()
    if location.getScheme() != "file":
        yield
        return
    folder = Path(location.getPath())
    was_made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(uri) from None
        if not folder.exists() or not os.path.samestat(os.fstat(descriptor), folder.stat()):
            raise _busy(uri)  # the folder was empty, and its writer has just removed it
        try:
            yield
        finally:
            if was_made:
                with suppress(OSError):  # it has tables
                    folder.rmdir()
    finally:
        os.close(descriptor)


def _busy(uri: str) -> LakeBusy:
    return LakeBusy(f"another process writes to {uri} at the moment; start again when it has ended")

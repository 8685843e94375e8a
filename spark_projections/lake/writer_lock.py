"""One writer of a lake at a time, where the lake is a folder of this machine.

Elsewhere the transactions of the tables alone decide between two writers. Here they do not suffice: a local filesystem
replaces an existing file when another one is renamed to it, so a transaction takes its place in two steps.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from annals.spark_projections.hadoop_paths import hadoop_folder
from annals.spark_projections.lake.formats.contract import LakeBusy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def writer_lock(spark: SparkSession, uri: str) -> Iterator[None]:
    """Keeps others from writing to a lake while the block runs; makes the folder. The end of the process ends the lock.

    Raises: LakeBusy where another process, or another block of this one, writes.
    """
    filesystem, root, _ = hadoop_folder(spark, uri)
    location = filesystem.makeQualified(root).toUri()
    if location.getScheme() != "file":
        yield
        return
    folder = Path(location.getPath())
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LakeBusy(f"another process writes to {uri} at the moment; start again when it has ended") from None
        yield
    finally:
        os.close(descriptor)

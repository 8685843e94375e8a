"""Ctrl-C while a verb waits for Spark."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType
from typing import TYPE_CHECKING, Any

from annals.api.cli.outcome import Interrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def own_interrupts() -> Iterator[None]:
    """Keeps the handler of Ctrl-C, which the start of a session replaces."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def interruptible_jobs(spark: SparkSession) -> Iterator[None]:
    """Lets Ctrl-C cancel the jobs of a session, for which threads may wait, and end the block with Interrupted.

    A handler that is not Python's own stays: it stops the work in another way, or ignores Ctrl-C.
    """
    was_interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        _drop_connection(spark)
        spark.sparkContext.cancelAllJobs()
        raise KeyboardInterrupt

    with own_interrupts(), silent_py4j():
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            if was_interrupted:  # the error may be that of a cancelled job
                raise Interrupted("stopped by Ctrl-C before the work was done.") from error
            raise


@contextmanager
def silent_py4j() -> Iterator[None]:
    """Drops what Py4J logs with the root logger: an interrupted call, or the end of Java, with a traceback."""
    root = logging.getLogger()
    root.addFilter(_is_not_from_py4j)
    try:
        yield
    finally:
        root.removeFilter(_is_not_from_py4j)


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return PurePath(record.pathname).parent.name != "py4j"


def _drop_connection(spark: SparkSession) -> None:
    """Closes this thread's connection to the JVM; its next call opens another one.

    An interrupted call leaves its answer on the connection, where the next call would take it for its own.
    """
    context: Any = spark.sparkContext
    if connection := context._gateway._gateway_client.get_thread_connection():
        connection.close()

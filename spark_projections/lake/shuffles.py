"""How Spark joins and shuffles a part of the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from annals.spark_projections.lake.formats.contract import default_settings
from annals.spark_projections.partitions import partition_count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: By how much rows in memory are larger than their files. Spark's default of 1 makes it send a whole log to all
#: executors, because it believes that the files with its states are small.
_COMPRESSION: Final = {"spark.sql.sources.fileCompressionFactor": "20"}


@contextmanager
def sized_shuffles(spark: SparkSession, events: int) -> Iterator[None]:
    """Shuffles and joins that fit a number of events, for one block.

    Settings that the session was configured with have precedence. Spark's default of 200 partitions costs more than the
    work itself in each shuffle of a short log.
    """
    partitions = partition_count(events, spark.sparkContext.defaultParallelism)
    with default_settings(spark, {_PARTITIONS: str(partitions)} | _COMPRESSION):
        yield

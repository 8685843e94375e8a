"""How many partitions Spark shuffles a part of the log in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import TYPE_CHECKING, Final

from annals.spark_projections.lake.formats.contract import default_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
#: Events of a partition: some 50 MB.
_PARTITION_EVENTS: Final = 50_000


@contextmanager
def sized_shuffles(spark: SparkSession, events: int) -> Iterator[None]:
    """Shuffles that fit a number of events, for one block; those that the session was configured with have precedence.

    Spark's default of 200 partitions costs more than the work itself in each shuffle of a short log.
    """
    partitions = partition_count(events, spark.sparkContext.defaultParallelism)
    with default_settings(spark, {_PARTITIONS: str(partitions)}):
        yield


def partition_count(events: int, cores: int) -> int:
    """The number of partitions for a number of events on some cores, all of which have work."""
    return max(cores, ceil(events / _PARTITION_EVENTS))

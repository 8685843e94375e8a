"""The log from a folder of segments; docs/segments.md says how they lie there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.segments.folder import open_folder
from spark_projections.places import for_spark
from spark_projections.schema import LOG_SCHEMA, salted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, folder: str) -> DataFrame:
    """The events of the segments that are complete now; what is added later is not in it.

    folder: a path or a URI that this process and Spark's both reach. What lies there without an entry in the manifest
    is left alone: a writer that was killed may have left it, and another one written the same events again.
    Raises: ValueError for a URI of no filesystem, UnknownSegment, OSError.
    """
    segments = open_folder(folder)
    paths = [f"{for_spark(folder)}/{entry.log.path}" for entry in segments.entries(segments.ranges())]
    return salted(spark.read.schema(LOG_SCHEMA).parquet(*paths)) if paths else spark.createDataFrame([], LOG_SCHEMA)

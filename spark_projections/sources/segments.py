"""The log from a folder of segments; docs/segments.md says how they lie there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from projections.segments.folder import open_folder
from spark_projections.schema import LOG_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, folder: str) -> DataFrame:
    """The events of the segments that are complete now; what is added later is not in it.

    folder: a path or a URI that this process and Spark's both reach. What lies there without an entry in the manifest
    is left alone: a writer that was killed may have left it, and another one written the same events again.
    Raises: ValueError for a URI of no filesystem, UnknownSegment, OSError.
    """
    segments = open_folder(folder)
    paths = [f"{_root(folder)}/{entry.log.path}" for entry in segments.entries(segments.ranges())]
    return spark.read.schema(LOG_SCHEMA).parquet(*paths) if paths else spark.createDataFrame([], LOG_SCHEMA)


def _root(folder: str) -> str:
    """The folder as Spark takes it: with a scheme, as its own default may be another, and nothing escaped."""
    parts = urlsplit(folder)
    if len(parts.scheme) < 2:  # one letter is a drive
        return f"file://{Path(folder).absolute().as_posix()}"
    scheme = "s3a" if parts.scheme == "s3" else parts.scheme
    return f"{scheme}://{parts.netloc}{unquote(parts.path)}".rstrip("/")

"""The log from a folder of segments; docs/segments.md says how they lie there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from projections.segments.entries import Entry, UnknownSegment
from projections.segments.folder import open_folder
from projections.segments.intact import intact_logs
from spark_projections.chain import Unproved, file_name
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
    return _read(spark, folder, [*segments.entries(segments.ranges())])


def proved(spark: SparkSession, folder: str) -> DataFrame:
    """The same, once the files are shown to be those of the manifest, and to hold the events that it says.

    Whether the events are those that were written is for `spark_projections.chain.prove`, which a rebuild calls: here
    the segments are shown to end with the hashes that it finds to be right. This process reads the bytes of all files
    of events once.
    Raises: Unproved; ValueError for a URI of no filesystem, OSError for a folder that cannot be listed.
    """
    segments = open_folder(folder)
    ranges = segments.ranges()
    try:
        entries = [*segments.entries(ranges)]
    except UnknownSegment as error:
        raise Unproved(str(error)) from None
    for finding in intact_logs(segments, [*zip(ranges, entries, strict=True)]):
        raise Unproved.at(finding.position, finding.what)
    log = _read(spark, folder, entries)
    _hold_what_is_said(log, entries)
    return log


def _read(spark: SparkSession, folder: str, entries: Sequence[Entry]) -> DataFrame:
    paths = [f"{for_spark(folder)}/{entry.log.path}" for entry in entries]
    return salted(spark.read.schema(LOG_SCHEMA).parquet(*paths)) if paths else spark.createDataFrame([], LOG_SCHEMA)


def _hold_what_is_said(log: DataFrame, entries: Sequence[Entry]) -> None:
    """Raises: Unproved for a file whose events are not those of its entry in the manifest."""
    last = (f.lower(f.hex(f.max_by(name, "position"))) for name in ("chain", "statehash"))
    facts = (f.min("position"), f.max("position"), f.count("*"), f.count_if(f.col("position") == f.col("last")), *last)
    files = log.withColumn("file", file_name()).groupBy("file").agg(*facts).collect() if entries else []
    found = {name: tuple(told) for name, *told in files}
    for entry in entries:
        told = (entry.first, entry.last, entry.events, entry.interactions, entry.chain, entry.statehash)
        if found.get(entry.log.path.rpartition("/")[2]) != told:
            raise Unproved.at(entry.first, f"{entry.log.path} does not hold what the manifest says")

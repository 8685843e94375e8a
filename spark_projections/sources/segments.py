"""The log from a folder of segments; docs/guides/segments.md describes its layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from annals.projections.segments.folder import MissingSegment, open_folder
from annals.projections.segments.manifest import ManifestEntry, UnreadableManifestEntry
from annals.projections.segments.verify_files import compare_files, verify_manifest
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.log_schema import LOG_SCHEMA, fill_later_columns
from annals.spark_projections.verify_log import UnverifiedLog, file_name_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, folder: str, after: int = 0) -> DataFrame:
    """The events after a position, of the segments that are complete at the time of the call, without later ones.

    folder: a path or a URI that this process and Spark's workers can access. Files without an entry in the manifest are
    ignored: a killed writer may have left them, and another one may have written the same events again.
    Raises: NoSegments, MissingSegment; ValueError for a URI without a filesystem, UnreadableManifestEntry, OSError.
    """
    segments = open_folder(folder)
    ranges = [range for range in segments.unbroken_ranges() if range.last > after]
    log = _read_entries(spark, folder, [*segments.entries(ranges)])
    return log.where(f.col("position") > after) if after else log


def read_verified(spark: SparkSession, folder: str) -> DataFrame:
    """The events as from `read`, after checking the files and their events against the manifest.

    `verify_log.verify_log`, which a rebuild calls, verifies the events' hashes. This function checks that each segment
    ends with the hashes of its manifest entry. Spark's tasks read all bytes of all event files once.
    Raises: UnverifiedLog; NoSegments; ValueError for a URI without a filesystem, OSError for a folder that cannot be
    listed.
    """
    segments = open_folder(folder)
    try:
        ranges = segments.unbroken_ranges()
        entries = [*segments.entries(ranges)]
    except (MissingSegment, UnreadableManifestEntry) as error:
        raise UnverifiedLog(str(error)) from None
    pairs = [*zip(ranges, entries, strict=True)]
    for finding in (*verify_manifest(pairs), *compare_files(pairs, _file_hashes(spark, folder))):
        raise UnverifiedLog.at_position(finding.position, finding.text)
    log = _read_entries(spark, folder, entries)
    _check_against_manifest(log, entries)
    return log


def stream(spark: SparkSession, folder: str) -> DataFrame:
    """Events as segments appear, from the first segment on.

    It also returns the events of files that no manifest names yet, and those that concurrent writers wrote twice. An
    interaction may be split over several micro-batches, and files may arrive in any order.
    """
    files = spark.readStream.schema(LOG_SCHEMA).option("pathGlobFilter", "*.parquet")
    return fill_later_columns(files.parquet(f"{spark_uri(folder)}/log"))


def _read_entries(spark: SparkSession, folder: str, entries: Sequence[ManifestEntry]) -> DataFrame:
    paths = [f"{spark_uri(folder)}/{entry.log.path}" for entry in entries]
    if not paths:
        return spark.createDataFrame([], LOG_SCHEMA)
    return fill_later_columns(spark.read.schema(LOG_SCHEMA).parquet(*paths))


def _file_hashes(spark: SparkSession, folder: str) -> dict[str, tuple[str, int]]:
    """The SHA-256 and the size of each file of events, by its name. Spark's tasks read them."""
    files = spark.read.format("binaryFile").load(f"{spark_uri(folder)}/log")
    hashes = files.select(f.regexp_extract("path", "[^/]*$", 0), f.sha2("content", 256), "length").collect()
    return {name: (digest, size) for name, digest, size in hashes}


def _file_name(entry: ManifestEntry) -> str:
    return entry.log.path.rpartition("/")[2]


def _check_against_manifest(log: DataFrame, entries: Sequence[ManifestEntry]) -> None:
    """Raises: UnverifiedLog for a file whose events do not match its entry in the manifest."""
    last_hashes = (f.lower(f.hex(f.max_by(name, "position"))) for name in ("chain", "statehash"))
    aggregates = (
        f.min("position"),
        f.max("position"),
        f.count("*"),
        f.count_if(f.col("position") == f.col("last")),
        *last_hashes,
    )
    file_rows = log.withColumn("file", file_name_column()).groupBy("file").agg(*aggregates).collect()
    values_by_file = {name: tuple(expected_values) for name, *expected_values in file_rows}
    for entry in entries:
        expected_values = (entry.first, entry.last, entry.events, entry.interactions, entry.chain, entry.statehash)
        if values_by_file.get(_file_name(entry)) != expected_values:
            raise UnverifiedLog.at_position(entry.first, f"{entry.log.path} does not hold what the manifest says")

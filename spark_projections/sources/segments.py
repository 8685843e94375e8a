"""The log from a folder of segments; docs/guides/segments.md describes its layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from annals.commands.verify.verify_log import VerificationFinding
from annals.projections.segments.folder import open_folder
from annals.projections.segments.manifest import ManifestEntry, SegmentRange, UnreadableManifestEntry
from annals.projections.segments.verify_files import compare_file, verify_manifest
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.log_schema import LOG_SCHEMA, with_salt
from annals.spark_projections.verify_log import UnverifiedLog, file_name_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, folder: str, after: int = 0) -> DataFrame:
    """The events after a position, of the segments that are complete at the time of the call, without later ones.

    folder: a path or a URI that this process and Spark's workers can access. Files without an entry in the manifest are
    ignored: a killed writer may have left them, and another one may have written the same events again.
    Raises: ValueError for a URI without a filesystem, UnreadableManifestEntry, OSError.
    """
    segments = open_folder(folder)
    ranges = [range for range in segments.ranges() if range.last > after]
    log = _read_entries(spark, folder, [*segments.entries(ranges)])
    return log.where(f.col("position") > after) if after else log


def read_verified(spark: SparkSession, folder: str) -> DataFrame:
    """The events as from `read`, after checking the files and their events against the manifest.

    `verify_log.verify_log`, which a rebuild calls, verifies the events' hashes. This function checks that each segment
    ends with the hashes of its manifest entry. Spark's tasks read all bytes of all event files once.
    Raises: UnverifiedLog; ValueError for a URI without a filesystem, OSError for a folder that cannot be listed.
    """
    segments = open_folder(folder)
    ranges = segments.ranges()
    try:
        entries = [*segments.entries(ranges)]
    except UnreadableManifestEntry as error:
        raise UnverifiedLog(str(error)) from None
    pairs = [*zip(ranges, entries, strict=True)]
    for finding in (*verify_manifest(segments, pairs), *_check_files(spark, folder, pairs)):
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
    return with_salt(files.parquet(f"{spark_uri(folder)}/log"))


def _read_entries(spark: SparkSession, folder: str, entries: Sequence[ManifestEntry]) -> DataFrame:
    paths = [f"{spark_uri(folder)}/{entry.log.path}" for entry in entries]
    return with_salt(spark.read.schema(LOG_SCHEMA).parquet(*paths)) if paths else spark.createDataFrame([], LOG_SCHEMA)


def _check_files(
    spark: SparkSession, folder: str, entries: Sequence[tuple[SegmentRange, ManifestEntry]]
) -> Iterator[VerificationFinding]:
    """A finding for each file of events that is missing, or has other bytes than were written."""
    if not entries:
        return
    files = spark.read.format("binaryFile").load(f"{spark_uri(folder)}/log")
    hashes = files.select(f.regexp_extract("path", "[^/]*$", 0), f.sha2("content", 256), "length").collect()
    hash_by_name = {name: (digest, size) for name, digest, size in hashes}
    for range, entry in entries:
        if (found := hash_by_name.get(_file_name(entry))) is None:
            yield VerificationFinding(range.first, f"{entry.log.path} cannot be read: there is no such file")
        elif finding := compare_file(range, entry.log, *found):
            yield finding


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
    file_rows = log.withColumn("file", file_name_column()).groupBy("file").agg(*aggregates).collect() if entries else []
    values_by_file = {name: tuple(expected_values) for name, *expected_values in file_rows}
    for entry in entries:
        expected_values = (entry.first, entry.last, entry.events, entry.interactions, entry.chain, entry.statehash)
        if values_by_file.get(_file_name(entry)) != expected_values:
            raise UnverifiedLog.at_position(entry.first, f"{entry.log.path} does not hold what the manifest says")

"""Where a lake gets the log from: any source of the log, read after a position, and the documents next to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as f

from annals.projections.segments.folder import open_folder
from annals.spark_projections.arrow_batches import Batches, record_batch, spark_columns
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.log_schema import LogHead
from annals.spark_projections.sources import annals, kafka, postgres, segments
from annals.spark_projections.sources.remote_log import RemoteLog
from annals.spark_projections.verify_log import LOG_START

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DOCUMENT_SCHEMA: Final = pa.schema([("sha256", pa.string()), ("content", pa.binary())])
#: Hashes that one query asks a database for.
_MAX_HASHES: Final = 1000


class LogSource(NamedTuple):
    """A source of the log.

    read: the events of whole interactions after a position, up to the end at the time of the call. documents: the
    documents of some hashes (a DataFrame with `sha256`), to which events after a position refer, as `sha256` and
    `content`, as far as the source has them. chain_at: a chain hash in hex that is that of the lake only if the source
    has the log of the lake up to a position; None where the source has no event there. end: the end of the log, of
    which the source may show less. is_stable: whether reading the same events again is cheap and gives the same.
    may_forget: whether the source may lack events that it had. may_hide: whether it does not show all events to each
    caller.
    """

    read: Callable[[int], DataFrame]
    documents: Callable[[DataFrame, int], DataFrame]
    chain_at: Callable[[int], str | None]
    end: Callable[[], LogHead]
    is_stable: bool = False
    may_forget: bool = False
    may_hide: bool = False


def from_registry(spark: SparkSession, url: str, token: str | None = None) -> LogSource:
    """The log of a running registry. The caller must see the whole log."""

    def read(after: int) -> DataFrame:
        return annals.read(spark, url, token, after=after)

    def documents(hashes: DataFrame, after: int) -> DataFrame:
        return hashes.mapInArrow(partial(_fetch_documents, url, token), spark_columns(_DOCUMENT_SCHEMA))

    def chain_at(position: int) -> str | None:
        remote = RemoteLog(url, token)
        # The end of an earlier interaction where none ends at the position, with another hash than the lake there.
        return None if remote.head().position < position else remote.head(str(position)).chain

    return LogSource(read, documents, chain_at, RemoteLog(url, token).head, may_hide=True)


def from_segments(spark: SparkSession, folder: str) -> LogSource:
    """The log in a folder of segments."""

    def documents(hashes: DataFrame, after: int) -> DataFrame:
        files = open_folder(folder)
        entries = [entry for entry in files.entries(files.ranges()) if entry.documents]
        paths = [f"{spark_uri(folder)}/{entry.documents.path}" for entry in entries if entry.documents]
        if not paths:
            return hashes.select("sha256", f.lit(None).cast("binary").alias("content")).limit(0)
        return spark.read.parquet(*paths).join(hashes, "sha256", "left_semi")

    def read(after: int) -> DataFrame:
        return segments.read(spark, folder, after)

    def end() -> LogHead:
        files = open_folder(folder)
        (entry,) = files.entries(files.unbroken_ranges()[-1:])
        return LogHead(entry.last, entry.chain)

    return LogSource(read, documents, partial(_chain_in_rows, read), end, is_stable=True)


def from_postgres(spark: SparkSession, database: str) -> LogSource:
    """The log in a registry's PostgreSQL database."""

    def documents(hashes: DataFrame, after: int) -> DataFrame:
        wanted = [row.sha256 for row in hashes.limit(_MAX_HASHES + 1).collect()]
        if len(wanted) <= _MAX_HASHES:
            return postgres.documents(spark, database, wanted)
        return postgres.documents(spark, database).join(hashes, "sha256", "left_semi")

    def read(after: int) -> DataFrame:
        return postgres.read(spark, database, after=after)

    return LogSource(
        read, documents, partial(postgres.chain_at, spark, database), partial(postgres.end, spark, database)
    )


def from_kafka(
    spark: SparkSession,
    servers: str,
    topic: str,
    options: Mapping[str, str] | None = None,
    time_of: Callable[[int], str] | None = None,
) -> LogSource:
    """The log in the topic that `annals publish` writes; documents where it publishes those as well.

    time_of: returns the time of the interaction that ends at a position; without it, the whole topic is read each time.
    """

    def options_after(after: int) -> Mapping[str, str] | None:
        return kafka.options_after(spark, servers, topic, options, after, time_of(after)) if time_of else options

    def read(after: int) -> DataFrame:
        recent = options_after(after)
        rows = kafka.read_rows(spark, servers, topic, recent).where(f.col("position") > after)
        new, is_stopped = kafka.next_interactions(rows, after)
        if is_stopped:
            kafka.check_records_in_flight(spark, servers, topic, recent, after)
        return new

    def documents(hashes: DataFrame, after: int) -> DataFrame:
        found = kafka.documents(spark, servers, topic, options_after(after))
        return found.join(hashes, "sha256", "left_semi")

    def rows_after(after: int) -> DataFrame:
        # Also of interactions that are not whole: a chain hash is in each of their records.
        return kafka.read_rows(spark, servers, topic, options_after(after)).where(f.col("position") > after)

    def end() -> LogHead:
        return _end_of_rows(kafka.read_rows(spark, servers, topic, options))

    return LogSource(read, documents, partial(_chain_in_rows, rows_after), end, may_forget=True)


def _chain_in_rows(read: Callable[[int], DataFrame], position: int) -> str | None:
    """`LogSource.chain_at` for a source whose rows alone have it."""
    rows = read(position - 1).where(f.col("position") == position).select(f.lower(f.hex("chain"))).head(1)
    return str(rows[0][0]) if rows else None


def _end_of_rows(log: DataFrame) -> LogHead:
    """`LogSource.end` for a source whose rows alone have it."""
    position, chain = log.agg(f.max("position"), f.lower(f.hex(f.max_by("chain", "position")))).collect()[0]
    return LogHead(position, chain) if position else LOG_START


def _fetch_documents(url: str, token: str | None, batches: Batches) -> Batches:
    remote = RemoteLog(url, token)
    for batch in batches:
        for sha256 in batch.column("sha256").to_pylist():
            if (content := remote.document(sha256)) is not None:
                yield record_batch([(sha256, content)], _DOCUMENT_SCHEMA)

"""The stream that updates the live tables from the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from annals.spark_projections.hadoop_paths import with_s3a_scheme
from annals.spark_projections.live.folder import LiveTableFolder
from annals.spark_projections.live.micro_batch import KEEP_SECONDS, MicroBatch, apply_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

#: The local property in which Spark stores the id of a micro-batch's stream.
_QUERY_ID_PROPERTY: Final = "sql.streaming.queryId"


def follow(
    log: DataFrame,
    folder: str,
    checkpoint: str,
    *,
    whole_interactions_only: bool,
    until_caught_up: bool = False,
    seconds: float = 10,
    keep_seconds: float = KEEP_SECONDS,
) -> StreamingQuery:
    """The running stream that updates `entities` and `changes` in a folder.

    log: a stream of `log_schema.LOG_SCHEMA` from its beginning. folder, checkpoint: URIs that Spark and all its
    executors can access; both belong to this stream alone. whole_interactions_only: every micro-batch ends with a whole
    interaction, as those of the source `annals` do; those of Kafka do not. until_caught_up: the stream stops at the
    current end of the log. seconds: interval between micro-batches. keep_seconds: seconds for which readers may still
    read replaced files.
    Raises: LiveTablesError, OSError; later errors are reported by the query.
    """
    spark = log.sparkSession
    table_folder = LiveTableFolder(spark, folder)
    table_folder.remove_unfinished()

    def process_batch(rows: DataFrame, number: int) -> None:
        apply_batch(
            LiveTableFolder(rows.sparkSession, folder),
            MicroBatch(rows, _query_id(rows), number),
            whole_interactions_only,
            keep_seconds,
        )

    stream_writer = log.writeStream.foreachBatch(process_batch).option(
        "checkpointLocation", with_s3a_scheme(checkpoint)
    )
    trigger = (
        stream_writer.trigger(availableNow=True)
        if until_caught_up
        else stream_writer.trigger(processingTime=f"{seconds} seconds")
    )
    return trigger.start()


def _query_id(rows: DataFrame) -> str:
    query_id = rows.sparkSession.sparkContext.getLocalProperty(_QUERY_ID_PROPERTY)
    assert query_id is not None, "Spark sets it for every micro-batch"
    return query_id

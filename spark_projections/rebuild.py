"""A rebuild of the read model whose rows Spark works out, from any source of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from projections.entities.leaves import MOST
from projections.entities.rebuild import Computed, Diverged, Report
from projections.segments.folder import filesystem_at
from spark_projections.events import Destination, refuse_existing, write
from spark_projections.load import computed
from spark_projections.places import for_spark
from spark_projections.stage import staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rebuild(
    log: DataFrame,
    replace: Callable[[Computed], Report],
    asof: int | None = None,
    stage: str | None = None,
    events: Destination | None = None,
    whole: Callable[[DataFrame], DataFrame] | None = None,
    most: int = MOST,
) -> Report:
    """Replaces the read model's tables by what Spark makes of a log.

    log: of the registry, from position 1 on; whole interactions. replace: proves, catches up and swaps, as
    `projections.entities.rebuild.rebuild` does; it refuses the log of another registry, or one with gaps. asof: Spark's
    part ends at or before this position. stage: URI of a folder that is not there yet, which Spark's workers and this
    process reach; a local one, which is removed again, unless given. events: where the xRegistry events of Spark's part
    go as well, once that is proved. whole: what of a log counts that is not in files, found once it is. most: leaves
    that the index takes of one entity.
    Raises: Diverged, FileExistsError for events that are there already, ValueError for a stage on no filesystem.
    """
    if stage is not None:
        filesystem_at(stage)
    if events is not None:
        refuse_existing(log.sparkSession, events.folder)
    if asof is not None:
        log = log.where(log.last <= asof)
    with staged(stage) as folder:
        if not log.inputFiles():
            log = _in_files(log, folder)
            log = whole(log) if whole else log
        report = replace(computed(log, _end(log), folder, most))
        if events is not None:
            write(log, events)
    return report


def _in_files(log: DataFrame, folder: str) -> DataFrame:
    """The same log in files, as segments are: it is gone through several times, and any other source is slow to ask."""
    place = f"{for_spark(folder)}/log"
    log.write.parquet(place)
    return log.sparkSession.read.parquet(place)


def _end(log: DataFrame) -> int:
    """The position that a log goes up to.

    Raises: Diverged for one that lacks a revision of a stream, or has one twice, which the state hash would not show.
    """
    # By stream, as who may not see subscriptions has a whole log without their positions.
    streams = log.groupBy("stream").agg(
        f.max("last").alias("last"), f.max("revision").alias("revision"), f.count("*").alias("events")
    )
    broken = f.when(f.col("revision") != f.col("events"), f.col("stream"))
    last, stream = streams.agg(f.max("last"), f.min(broken)).collect()[0]
    if stream is not None:
        raise Diverged(f"the source does not have every event of {stream} once")
    return int(last or 0)

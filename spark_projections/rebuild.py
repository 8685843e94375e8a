"""A rebuild of the read model whose rows Spark works out, from any source of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from projections.entities.leaves import MAX_LEAVES
from projections.entities.rebuild import PrecomputedRows, RebuildReport
from projections.segments.folder import filesystem_at
from spark_projections.events import EventDestination, refuse_existing, write_events
from spark_projections.hadoop_paths import spark_uri
from spark_projections.load import compute_read_model
from spark_projections.staging_folder import staging_folder
from spark_projections.verify_log import ChainAnchors, verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rebuild(
    log: DataFrame,
    replace: Callable[[PrecomputedRows], RebuildReport],
    asof: int | None = None,
    stage: str | None = None,
    events: EventDestination | None = None,
    whole: Callable[[DataFrame], DataFrame] | None = None,
    most: int = MAX_LEAVES,
    trust: ChainAnchors | None = None,
) -> RebuildReport:
    """Replaces the read model's tables by what Spark makes of a log, once its chain of hashes is proved.

    log: of the registry, from position 1 on; whole interactions. replace: compares with the state hash, catches up and
    swaps, as `projections.entities.rebuild.rebuild` does. asof: Spark's part ends at or before this position. stage:
    URI of a folder that is not there yet, which Spark's workers and this process reach; a local one, which is removed
    again, unless given. events: where the xRegistry events of Spark's part go as well, once that is proved. whole: what
    of a log counts that is not in files, found once it is. most: leaves that the index takes of one entity. trust: what
    the log's chain hashes are compared with.
    Raises: UnverifiedLog before any row is made, Diverged, FileExistsError for events that are there already,
    ValueError for a stage on no filesystem.
    """
    if stage is not None:
        filesystem_at(stage)
    if events is not None:
        refuse_existing(log.sparkSession, events.folder)
    if asof is not None:
        log = log.where(log.last <= asof)
    with staging_folder(stage) as folder:
        in_files = bool(log.inputFiles())
        if not in_files:
            log = _in_files(log, folder)
            log = whole(log) if whole else log
        # What is proved is what is used: the source is not asked again.
        end = verify_log(log, trust, in_files)
        report = replace(compute_read_model(log, end.position, folder, most))
        if events is not None:
            write_events(log, events)
    return report


def _in_files(log: DataFrame, folder: str) -> DataFrame:
    """The same log in files, as segments are: it is gone through several times, and any other source is slow to ask."""
    place = f"{spark_uri(folder)}/log"
    log.write.parquet(place)
    return log.sparkSession.read.parquet(place)

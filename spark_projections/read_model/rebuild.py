"""A rebuild of the read model with rows that Spark computes, from any source of the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.entities.rebuild import PrecomputedRows, RebuildReport
from annals.projections.segments.folder import filesystem_at
from annals.spark_projections.events import EventDestination, refuse_existing, write_events
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.read_model.load import precomputed_rows
from annals.spark_projections.read_model.load_sqlite import ReportRows
from annals.spark_projections.read_model.staging_folder import staging_folder
from annals.spark_projections.verify_log import ChainAnchors, verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rebuild(
    log: DataFrame,
    replace_rows: Callable[[PrecomputedRows], RebuildReport],
    asof: int | None = None,
    stage: str | None = None,
    events: EventDestination | None = None,
    drop_incomplete: Callable[[DataFrame], DataFrame] | None = None,
    max_leaves: int = MAX_LEAVES,
    anchors: ChainAnchors | None = None,
    report_rows: ReportRows = lambda count: None,
) -> RebuildReport:
    """Replaces the read model's tables with rows that Spark computes from a log, after verifying its chain hashes.

    log: of the registry, from position 1 on; whole interactions. replace_rows: compares the state hash, applies newer
    events and swaps the tables, as `annals.projections.entities.rebuild.rebuild` does. asof: Spark's part ends at or
    before this position. stage: URI of a folder that does not exist yet, and that Spark's workers and this process can
    access; by default a local folder, which is removed afterwards. events: where to write the xRegistry events of
    Spark's part too, after the verification. drop_incomplete: selects the whole interactions of a log that is not read
    from files, after it was copied to files. max_leaves: maximum index leaves of one entity. anchors: external values
    to compare the log's chain hashes with. report_rows: see `precomputed_rows`.
    Raises: UnverifiedLog before any row is written, RebuildDiverged, FileExistsError for an existing events folder,
    ValueError for a stage without a filesystem.
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
            log = _copy_to_files(log, folder)
            log = drop_incomplete(log) if drop_incomplete else log
        # Verify and use the same copy: the source is not read again.
        log_end = verify_log(log, anchors, in_files)
        report = replace_rows(precomputed_rows(log, log_end.position, folder, max_leaves, report_rows))
        if events is not None:
            write_events(log, events)
    return report


def _copy_to_files(log: DataFrame, folder: str) -> DataFrame:
    """A copy of the log in files, like segments. A rebuild reads the log several times, and other sources are slow."""
    log_uri = f"{spark_uri(folder)}/log"
    log.write.parquet(log_uri)
    return log.sparkSession.read.parquet(log_uri)

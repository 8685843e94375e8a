"""The progress of Spark: how many tasks its jobs have completed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from annals.api.cli.progress import ReportProgress

if TYPE_CHECKING:
    from pyspark.core.status import StatusTracker
    from pyspark.sql import SparkSession

_POLL_SECONDS: Final = 1.0


@contextmanager
def reported_tasks(spark: SparkSession, report: ReportProgress) -> Iterator[None]:
    """Reports the completed tasks while the block runs; their total is not known, because jobs follow each other."""
    stop = Event()
    thread = Thread(target=_report_tasks, args=(spark.sparkContext.statusTracker(), report, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _report_tasks(tracker: StatusTracker, report: ReportProgress, stop: Event) -> None:
    completed_by_stage: dict[int, int] = {}
    while not stop.wait(_POLL_SECONDS):
        before = sum(completed_by_stage.values())
        completed_by_stage |= _completed_tasks(tracker)
        if (completed := sum(completed_by_stage.values())) != before:
            report(completed, 0)


def _completed_tasks(tracker: StatusTracker) -> dict[int, int]:
    """The number of completed tasks by stage, of all jobs that Spark still remembers."""
    jobs = [tracker.getJobInfo(job_id) for job_id in tracker.getJobIdsForGroup(None)]
    stages = {stage_id: tracker.getStageInfo(stage_id) for job in jobs if job for stage_id in job.stageIds}
    return {stage_id: stage.numCompletedTasks for stage_id, stage in stages.items() if stage}

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
        for job_id in tracker.getActiveJobsIds():
            job = tracker.getJobInfo(job_id)
            for stage_id in job.stageIds if job else ():
                if stage := tracker.getStageInfo(stage_id):
                    completed_by_stage[stage_id] = stage.numCompletedTasks
        report(sum(completed_by_stage.values()), 0)

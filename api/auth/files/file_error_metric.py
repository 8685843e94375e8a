"""The metric of files of callers that have changed and cannot be used (ACC-19)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from annals.api.auth.files.periodic_tasks import PeriodicTasks


class FileErrorCollector(Collector):
    """Reads the state of the files at each scrape."""

    def __init__(self, periodic_tasks: PeriodicTasks) -> None:
        self._periodic_tasks = periodic_tasks

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "annals_auth_file_error",
            "1 for a file of callers or certificates that has changed and cannot be used.",
            labels=("file",),
        )
        for file, has_error in self._periodic_tasks.file_errors().items():
            family.add_metric((file,), int(has_error))
        yield family

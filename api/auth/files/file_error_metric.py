"""The metric of files of callers that have changed and cannot be used (ACC-19)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from annals.api.auth.files.watched_files import Upkeep


class FileErrorCollector(Collector):
    """Reads the state of the files at each scrape."""

    def __init__(self, upkeep: Upkeep) -> None:
        self._upkeep = upkeep

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "annals_auth_file_error",
            "1 for a file of callers or certificates that has changed and cannot be used.",
            labels=("file",),
        )
        for file, has_error in self._upkeep.file_errors().items():
            family.add_metric((file,), int(has_error))
        yield family

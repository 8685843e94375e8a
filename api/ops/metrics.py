"""Prometheus metrics: requests by route and status, commands and commits, positions of log, read model and index.

Labels take few values, and no label value is text that a client sent.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from annals import __version__
from annals.api.compat.confluent.paths import CONTEXT_PATH
from annals.api.http.access_log.route_templates import RouteTemplates
from annals.api.http.problem_response import COMPAT, OWN_PREFIX
from annals.api.http.request import Request
from annals.api.xregistry.request.paths import FIXED_PATHS

CONTENT_TYPE: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")

_SECONDS_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
_BATCH_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"))
_LABELS_BY_DEPTH: Final = {0: "registry", 1: "groups", 2: "group", 3: "resources", 4: "resource", 6: "version"}
#: Returns the positions of the log, of the read model and of its attribute index; called at each scrape.
ReadPositions = Callable[[], tuple[int, int, int]]


class ServerMetrics:
    """The metrics of one process. own_names: names below `/-/` that are served. routes: those of `/compat` are used."""

    def __init__(self, own_names: frozenset[str], routes: RouteTemplates) -> None:
        self._own_names = own_names
        self._routes = routes
        #: The Prometheus registry of all metrics. Other parts of the process may register theirs.
        self.registry = self._registry = CollectorRegistry()
        build = Gauge(
            "annals_build_info", "The program and Python, by version.", ("version", "python"), registry=self._registry
        )
        build.labels(__version__, platform.python_version()).set(1)
        self._requests = self._counter("http_requests", "Requests answered.", "route", "method", "status")
        self._seconds = self._histogram(
            "http_request_seconds", "Time to an answer.", _SECONDS_BUCKETS, "route", "method"
        )
        commands = self._counter("commands", "Commands by outcome.", "outcome")
        self._done_commands, self._refused_commands = commands.labels("done"), commands.labels("refused")
        self._commits = self._histogram("commit_seconds", "Time of one transaction of the log.", _SECONDS_BUCKETS)
        self._batch_sizes = self._histogram("commit_commands", "Commands in one transaction.", _BATCH_BUCKETS)
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        ProcessCollector(registry=self._registry)

    def count_response(self, request: Request, status: int, started_at: float) -> None:
        """Counts one response.

        started_at: `time.perf_counter()` at the start of the request. Cost: two microseconds.
        """
        method = request.method if request.method in _METHODS else "other"
        key = route_label(request, self._own_names, self._routes), method, status
        counter, histogram = self._children.get(key) or self._metrics_of(key)
        counter.inc()
        histogram.observe(time.perf_counter() - started_at)

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """See `annals.commands.command_bus.CommitListener`."""
        self._done_commands.inc(commands - refused)
        if refused:
            self._refused_commands.inc(refused)
        self._commits.observe(seconds)
        self._batch_sizes.observe(commands)

    def add_position_gauges(self, positions: ReadPositions) -> None:
        """Adds a gauge for each of some positions."""
        self._registry.register(_PositionsCollector(positions))

    def text(self) -> bytes:
        """All metrics in the Prometheus text format."""
        return generate_latest(self._registry)

    def _metrics_of(self, key: tuple[str, str, int]) -> tuple[Counter, Histogram]:
        kind, method, status = key
        child = self._requests.labels(kind, method, str(status)), self._seconds.labels(kind, method)
        return self._children.setdefault(key, child)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"annals_{name}", text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"annals_{name}", text, labels, buckets=buckets, registry=self._registry)


def route_label(request: Request, own_names: frozenset[str], routes: RouteTemplates) -> str:
    """The kind of the requested path, one of about twenty; below `/compat` the template, one of about fifty."""
    segments = request.segments
    if segments[:1] == (OWN_PREFIX,):
        name = segments[1] if len(segments) > 1 else ""
        return f"/-/{name}" if name in own_names else "/-/"
    if segments[:1] == (COMPAT,):
        route = routes.route(request)
        # A path below a context does the same as the one without it.
        return route.replace(CONTEXT_PATH + "/", "/") if route is not None else COMPAT
    if len(segments) == 1 and segments[0] in FIXED_PATHS:
        return segments[0]
    if len(segments) == 5:
        return segments[4] if segments[4] in ("meta", "versions") else "unknown"
    return _LABELS_BY_DEPTH.get(len(segments), "unknown")


class _PositionsCollector(Collector):
    def __init__(self, positions: ReadPositions) -> None:
        self._positions = positions

    def collect(self) -> Iterator[GaugeMetricFamily]:
        head, applied_position, index_position = self._positions()
        yield GaugeMetricFamily("annals_log_position", "Position of the last event in the log.", value=head)
        yield GaugeMetricFamily(
            "annals_read_model_position", "Position that the read model reaches.", value=applied_position
        )
        yield GaugeMetricFamily(
            "annals_attribute_index_position",
            "Position that the index over attributes reaches, at most a few hundred events behind.",
            value=index_position,
        )

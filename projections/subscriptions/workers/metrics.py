"""The Prometheus metrics of deliveries: attempts, outcomes, time from commit to acknowledgement, and lag (SUB-842).

The only label without a fixed set of values is the subscription id, which the server assigns; its metrics are removed
with the subscription.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from annals.projections.subscriptions.contract import DeliveryResult

_SECONDS_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 5, 60, 3600)

#: Subscription ids, each with its lag behind the log in positions.
Lags = Callable[[], Iterable[tuple[str, int]]]


class DeliveryMetrics:
    """The metrics of the subscriptions that one process delivers for."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._registry = registry or CollectorRegistry()
        self._outcomes = Counter(
            "annals_delivery_attempts",
            "Attempts to deliver, by what became of them.",
            ("subscription", "outcome"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "annals_delivery_seconds",
            "Time from an event's commit to its acknowledgement.",
            ("subscription",),
            buckets=_SECONDS_BUCKETS,
            registry=self._registry,
        )
        self._dead_letters = Counter(
            "annals_delivery_dead_letters", "Events given up.", ("subscription",), registry=self._registry
        )

    @property
    def registry(self) -> CollectorRegistry:
        """The registry from which they are collected."""
        return self._registry

    def count_attempt(self, id: str, result: DeliveryResult) -> None:
        """Counts an attempt."""
        self._outcomes.labels(id, result.value).inc()

    def observe_delivery(self, id: str, seconds: float) -> None:
        """Records an acknowledgement. seconds: since the commit."""
        self._seconds.labels(id).observe(max(0.0, seconds))

    def count_dead_letter(self, id: str) -> None:
        """Counts a dead letter."""
        self._dead_letters.labels(id).inc()

    def register_lags(self, lags: Lags) -> None:
        """Adds the lag gauge, which is computed at each scrape."""
        self._registry.register(_LagCollector(lags))

    def remove_subscription(self, id: str) -> None:
        """Removes the metrics of a subscription."""
        for result in DeliveryResult:
            _remove(self._outcomes, id, result.value)
        _remove(self._seconds, id)
        _remove(self._dead_letters, id)


def _remove(metric: Counter | Histogram, *labels: str) -> None:
    with suppress(KeyError):
        metric.remove(*labels)


class _LagCollector(Collector):
    def __init__(self, lags: Lags) -> None:
        self._lags = lags

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "annals_delivery_lag", "Positions of the log beyond a subscription's cursor.", labels=("subscription",)
        )
        for id, lag in self._lags():
            family.add_metric((id,), lag)
        yield family

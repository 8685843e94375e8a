"""Prometheus metrics of links: lag, state, and the result of the last comparison.

The id of a link is the only label that is not from a fixed list. An administrator chooses it, and it disappears with
the link.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from annals.api.replication.representations import LINK_STATES, link_state_name, replication_lag
from annals.api.replication.wiring import PassiveReplication
from annals.projections.entities.view_pool import ViewPool

_LAG_HELP: Final = "Positions of the other registry's log that a link has not taken in, as of its last look."
_STATE_HELP: Final = "1 for the state that a link is in."
_EQUAL_HELP: Final = "1 where both ends of a link held the same when they were compared last, 0 where they did not."


def add_link_metrics(registry: CollectorRegistry, readers: ViewPool, replication: PassiveReplication) -> None:
    """Registers gauges whose values are computed at each scrape."""
    registry.register(_LinkMetricsCollector(readers, replication))


class _LinkMetricsCollector(Collector):
    def __init__(self, readers: ViewPool, replication: PassiveReplication) -> None:
        self._readers = readers
        self._replication = replication

    def collect(self) -> Iterable[GaugeMetricFamily]:
        lag_gauge = GaugeMetricFamily("annals_link_lag_positions", _LAG_HELP, labels=("link",))
        state_gauge = GaugeMetricFamily("annals_link_state", _STATE_HELP, labels=("link", "state"))
        equal_gauge = GaugeMetricFamily("annals_link_equal", _EQUAL_HELP, labels=("link",))
        for link in self._readers.quick_view().links.all():
            progress = self._replication.progress(link)
            if (lag := replication_lag(progress)) is not None:
                lag_gauge.add_metric((link.id,), lag["positions"])
            for name in LINK_STATES:
                state_gauge.add_metric((link.id, name), float(name == link_state_name(link, progress)))
            if (verdict := progress.status.get("verdict")) is not None:
                equal_gauge.add_metric((link.id,), float(verdict == "equal"))
        return (lag_gauge, state_gauge, equal_gauge)

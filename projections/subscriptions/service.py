"""The delivery service of a server. It runs in its own thread and event loop, so neither blocks the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Thread
from typing import Final

from prometheus_client import CollectorRegistry

from annals.projections.events.event_families import EventFamily, XRegistryFamily
from annals.projections.events.xregistry_events import XRegistryEvents
from annals.projections.subscriptions.delivery_status import StoredDeliveries
from annals.projections.subscriptions.ports import LEASE_SECONDS, DeliveryPorts
from annals.projections.subscriptions.workers.deliverer import WRITE_DELAY_SECONDS, Deliverer
from annals.projections.subscriptions.workers.metrics import DeliveryMetrics

#: Seconds that a stopping server waits for running attempts.
_GRACE_SECONDS: Final = 15.0


class DeliveryService:
    """Delivers for the subscriptions of one store from `start` to `stop`; it also observes commits.

    deliveries: their status.
    metrics: the figures of this process.
    """

    def __init__(
        self,
        url: str,
        ports: DeliveryPorts,
        families: Sequence[EventFamily] | None = None,
        *,
        lease_seconds: float = LEASE_SECONDS,
        write_delay: float = WRITE_DELAY_SECONDS,
        metrics: CollectorRegistry | None = None,
    ) -> None:
        """metrics: the collector registry to which the figures are added."""
        self.metrics = DeliveryMetrics(metrics)
        all_families = families if families is not None else (XRegistryFamily(XRegistryEvents()),)
        self._deliverer = Deliverer(
            url, ports, all_families, metrics=self.metrics, lease_seconds=lease_seconds, write_delay=write_delay
        )
        self.deliveries = StoredDeliveries(url, ports, all_families, self._deliverer)
        self.metrics.register_lags(self.lags)
        self._thread: Thread | None = None

    def start(self) -> None:
        """Starts the thread and returns at once."""
        self._thread = Thread(target=self._run, name="annals-deliveries", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops after running attempts have finished or timed out."""
        self._deliverer.stop()
        if self._thread is not None:
            self._thread.join(_GRACE_SECONDS)
        self.deliveries.close()

    def lags(self) -> list[tuple[str, int]]:
        """The subscriptions that this process delivers for, each with its lag behind the log in positions."""
        return self._deliverer.lags()

    def committed(self, commands: int, refused: int, seconds: float) -> None:
        """Wakes the deliverer after a commit; see `annals.commands.command_bus.CommitListener`."""
        self._deliverer.committed()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._deliverer.run())


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # uvloop does not exist for Windows
        return None
    return uvloop.Loop

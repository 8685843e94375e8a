"""What the workers of a deliverer need from it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from annals.projections.events.event_families import EventFamily
from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.ports import DeliveryPorts
from annals.projections.subscriptions.workers.metrics import DeliveryMetrics

Worker = TypeVar("Worker", contravariant=True)


class DelivererContext(Protocol[Worker]):
    """The interface of a deliverer to its workers. Line: the type of worker for one subscription."""

    @property
    def ports(self) -> DeliveryPorts: ...
    @property
    def families(self) -> Sequence[EventFamily]: ...
    @property
    def metrics(self) -> DeliveryMetrics: ...
    @property
    def may_send(self) -> bool:
        """Whether the lease is valid and the deliverer is not stopping."""

    async def catch_up(self) -> None:
        """Returns when the workers know every subscription change whose command was answered before (SUB-833)."""

    async def read_again(self, sequences: Sequence[int]) -> Mapping[int, EventMessage]:
        """Messages by sequence, read from the log once more."""

    def save_soon(self, worker: Worker) -> None:
        """Schedules a write of a worker's state."""

    def read_more(self, worker: Worker) -> None:
        """Records that a worker has room for more of the log, or that its read position changed."""

    def log_failure(self, error: Exception) -> None:
        """Logs an unexpected error."""

    def start_task(self, coroutine: Any) -> asyncio.Task[Any]:
        """Runs a coroutine as a task and keeps a reference to it."""

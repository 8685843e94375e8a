"""What the lines of a deliverer need of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from projections.events.event_families import EventFamily
from projections.subscriptions.event_messages import EventMessage
from projections.subscriptions.ports import DeliveryPorts
from projections.subscriptions.workers.metrics import DeliveryMetrics

Line = TypeVar("Line", contravariant=True)


class DelivererContext(Protocol[Line]):
    """See the module. Line: what delivers for one subscription."""

    @property
    def ports(self) -> DeliveryPorts: ...
    @property
    def families(self) -> Sequence[EventFamily]: ...
    @property
    def metrics(self) -> DeliveryMetrics: ...
    @property
    def may_send(self) -> bool:
        """Whether the lease holds and the deliverer goes on."""

    async def caught_up(self) -> None:
        """Returns when every change of a subscription that was answered by now is known to its line (SUB-833)."""

    async def again(self, sequences: Sequence[int]) -> Mapping[int, EventMessage]:
        """Messages, read from the log once more."""

    def changed(self, line: Line) -> None:
        """Has a line's state written soon."""

    def hungry(self, line: Line) -> None:
        """Says that a line has room for more of the log, or is elsewhere in it than it was."""

    def failed(self, error: Exception) -> None:
        """Notes what should not have happened."""

    def start(self, work: Any) -> asyncio.Task[Any]:
        """Runs a coroutine as a task that is kept."""

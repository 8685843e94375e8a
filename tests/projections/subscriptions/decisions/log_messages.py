"""Messages of the log for tests of queues, which look only at sequences."""

from __future__ import annotations

from typing import Any

from annals.projections.subscriptions.event_messages import EventMessage
from annals.projections.subscriptions.sequence import sequence_of


def message(position: int) -> EventMessage:
    """The message of the event at a position."""
    whole: Any = None
    return EventMessage(sequence_of(position, 0), "xregistry", whole, {}, "")

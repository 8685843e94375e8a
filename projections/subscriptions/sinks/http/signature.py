"""The signatures with which a receiver verifies that a delivery comes from this registry unchanged.

Spec: Standard Webhooks 1.0.0, "Verifying webhook authenticity".
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Sequence

from cloudevents.core.v1.event import CloudEvent

from annals.projections.subscriptions.sinks.http.messages import header_value


def signature_headers(key: bytes, events: Sequence[CloudEvent], body: bytes, now: float) -> tuple[tuple[str, str], ...]:
    """The headers that sign a message with some events. now: time of the attempt, in seconds since 1970."""
    id, time = _message_id(events), str(int(now))
    signature = hmac.digest(key, f"{id}.{time}.".encode() + body, "sha256")
    return (
        ("webhook-id", id),
        ("webhook-timestamp", time),
        ("webhook-signature", f"v1,{b64encode(signature).decode()}"),
    )


def _message_id(events: Sequence[CloudEvent]) -> str:
    """The message id, the same in every attempt: the event's id, or a hash of all ids of a batch."""
    ids = [event.get_id() for event in events]
    if len(ids) == 1:
        return header_value(ids[0])
    return "batch_" + hashlib.sha256("\n".join(ids).encode()).hexdigest()

"""Signatures of deliveries, so that who receives one can tell that it is this registry's, and unchanged.

Spec: Standard Webhooks 1.0.0, "Verifying webhook authenticity".
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Sequence

from cloudevents.core.v1.event import CloudEvent

from projections.subscriptions.sinks.http.messages import header_value


def signature_headers(key: bytes, events: Sequence[CloudEvent], body: bytes, now: float) -> tuple[tuple[str, str], ...]:
    """The headers that sign a message of some events. now: in seconds since 1970, of the attempt."""
    id, time = _message_id(events), str(int(now))
    signature = hmac.digest(key, f"{id}.{time}.".encode() + body, "sha256")
    return (
        ("webhook-id", id),
        ("webhook-timestamp", time),
        ("webhook-signature", f"v1,{b64encode(signature).decode()}"),
    )


def _message_id(events: Sequence[CloudEvent]) -> str:
    """The same in every attempt: the event's, or one that a batch's events have together."""
    ids = [event.get_id() for event in events]
    if len(ids) == 1:
        return header_value(ids[0])
    return "batch_" + hashlib.sha256("\n".join(ids).encode()).hexdigest()

"""What a subscription would have matched in the past (UI-110)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Members of a subscription that select its events. A preview needs no sink.
_SELECTING: Final = ("source", "types", "filters")


def preview_body(subscription: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a preview of a subscription."""
    body = {name: subscription[name] for name in _SELECTING if name in subscription}
    families = subscription.get("config", {}).get("families")
    return body | ({"config": {"families": families}} if families else {})

"""Timestamps as texts that compare: RFC 3339 in UTC with `Z`, as attributes hold them."""

from __future__ import annotations

from datetime import UTC, datetime


def to_text(moment: datetime) -> str:
    """RFC 3339 in UTC; microseconds where there are any."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def instant_key(timestamp: str) -> str:
    """Sorts normalized timestamps as instants; equal for texts that differ in trailing zeros only."""
    plain = timestamp[:-1]
    return plain.rstrip("0").rstrip(".") if "." in plain else plain

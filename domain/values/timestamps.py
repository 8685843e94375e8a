"""Timestamps as comparable texts: RFC 3339 in UTC with `Z`, as attributes contain them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def to_text(instant: datetime) -> str:
    """RFC 3339 in UTC; with microseconds if they are not zero."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def instant_key(timestamp: str) -> str:
    """A key that sorts normalized timestamps as instants; equal for texts that differ only in trailing zeros."""
    local_time = timestamp[:-1]
    return local_time.rstrip("0").rstrip(".") if "." in local_time else local_time


def just_before(timestamp: str) -> str:
    """A normalized timestamp up to a microsecond earlier; the same one if there is no earlier one."""
    try:
        return to_text(datetime.fromisoformat(timestamp) - timedelta(microseconds=1))
    except OverflowError:
        return timestamp

"""Times of interactions and their text form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

#: Returns the current time.
Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The machine's time in UTC."""
    return datetime.now(UTC)


@lru_cache(maxsize=64)  # all events of an interaction have the same time
def format_time(time: datetime) -> str:
    """RFC 3339 in UTC, always with six digits, so that text order is time order."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


@lru_cache(maxsize=64)
def parse_time(text: str) -> datetime:
    """The inverse of `format_time`."""
    return datetime.fromisoformat(text)

"""RFC 3339 timestamps, in UTC, with the sub-second digits that a client sent (SER-11)."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

_RFC3339: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:)([0-9]{2})(\.[0-9]+)?(?:([Zz])|([+-])([0-9]{2}):([0-9]{2}))\Z",
    re.ASCII,
)


@lru_cache(maxsize=256)  # most timestamps of an import are equal: its own time
def to_utc(text: str) -> str:
    """The same instant with `Z` as its offset, sub-second digits unchanged.

    A second 60 becomes the first one of the next minute, because the clocks that it is compared with have no leap
    seconds.
    Raises: ValueError, OverflowError at the ends of the calendar.
    """
    match = _RFC3339.match(text)
    if match is None:
        raise ValueError("it is not an RFC 3339 timestamp such as 2030-12-19T06:00:00Z")
    day, hour_and_minute, second, fraction, utc_suffix, sign, hours, minutes = match.groups()
    is_leap_second = second == "60"
    instant = datetime.fromisoformat(f"{day}T{hour_and_minute}{'59' if is_leap_second else second}")
    if not utc_suffix:
        instant -= _offset(sign, int(hours), int(minutes))
    if is_leap_second:
        instant += timedelta(seconds=1)
    return f"{instant.isoformat()}{fraction or ''}Z"


def _offset(sign: str, hours: int, minutes: int) -> timedelta:
    if hours > 23 or minutes > 59:
        raise ValueError("its offset is out of range")
    return timedelta(hours=hours, minutes=minutes) * (1 if sign == "+" else -1)

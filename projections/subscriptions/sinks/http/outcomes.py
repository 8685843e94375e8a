"""The outcomes of HTTP responses (subscriptions 8.3)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome

#: The longest wait that a sink can request.
MAX_RETRY_AFTER: Final = timedelta(days=30)

#: Results by status. Of the others, 2xx is delivered, 3xx is rejected, and the rest is retried.
_RESULTS: Final[Mapping[int, DeliveryResult]] = {
    **dict.fromkeys((400, 413, 415, 422), DeliveryResult.REJECTED),
    **dict.fromkeys((401, 403), DeliveryResult.UNAUTHORIZED),
    410: DeliveryResult.GONE,
}
#: Statuses whose `Retry-After` is read.
_RETRY_STATUSES: Final = frozenset((429, 503))


def response_outcome(status: int, message: str, retry_after: str | None, now: datetime) -> Outcome:
    """The outcome of a response. message: of the response. retry_after: its `Retry-After`."""
    code = str(status)
    if 200 <= status < 300:
        return DELIVERED
    if 300 <= status < 400:
        return Outcome(DeliveryResult.REJECTED, code, message)
    until = parse_retry_after(retry_after, now) if status in _RETRY_STATUSES and retry_after is not None else None
    return Outcome(_RESULTS.get(status, DeliveryResult.RETRY), code, message, until)


def parse_retry_after(text: str, now: datetime) -> datetime | None:
    """The time that a `Retry-After` gives, in seconds or as a date; None unless it is in the future."""
    retry_at = _parse_seconds(text.strip(), now) or _parse_date(text.strip())
    return min(retry_at, now + MAX_RETRY_AFTER) if retry_at is not None and retry_at > now else None


def _parse_seconds(text: str, now: datetime) -> datetime | None:
    if not (text.isascii() and text.isdigit()):
        return None
    # Ten digits already exceed the longest wait.
    return now + min(timedelta(seconds=int(text[:10])), MAX_RETRY_AFTER)


def _parse_date(text: str) -> datetime | None:
    try:
        parsed = parsedate_to_datetime(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None

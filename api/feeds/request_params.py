"""Query parameters of a feed: where to begin, how many events, and how long to wait.

An unknown parameter is refused: a misspelt filter would otherwise let all events through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from annals.api.http.query_params import (
    QueryParams,
    bounded_number,
    invalid_param,
    query_params,
    query_without,
    single_value,
)
from annals.api.http.request import Request

#: Maximum number of events in a response that is built completely before it is sent.
MAX_LIMIT: Final = 10_000
#: Maximum seconds that a reader may wait for the first event.
MAX_WAIT: Final = 60
#: Largest `limit`. It bounds also an endless stream, which ends after so many events.
_MAX_COUNT: Final = 10**18 - 1

_AFTER: Final = "after"
_LAST_EVENT_ID: Final = b"last-event-id"
_SECONDS: Final = re.compile(r"[0-9]{1,2}(?:\.[0-9]{1,3})?\Z")
_PAGING: Final = (_AFTER, "limit", "wait")


@dataclass(frozen=True, slots=True)
class FeedParams:
    """after: a moment of the log as text. name: the parameter or header that gave it. limit: None if not given.

    values: the parameters that select events. query: the raw query without `after`, for the `next` link.
    """

    after: str
    name: str
    limit: int | None
    wait: float
    values: QueryParams
    query: str


def parse_feed_params(request: Request, selection_names: Iterable[str] = ()) -> FeedParams:
    """The feed parameters of a request. selection_names: names of the parameters that select events.

    Raises: BadRequest.
    """
    parameters = query_params(request, {*_PAGING, *selection_names})
    last_event_id = request.header(_LAST_EVENT_ID)
    after = last_event_id if last_event_id else single_value(parameters, _AFTER) or "0"
    return FeedParams(
        after=after.strip(),
        name=_LAST_EVENT_ID.decode() if last_event_id else _AFTER,
        limit=_parse_limit(single_value(parameters, "limit")),
        wait=_parse_wait(single_value(parameters, "wait")),
        values={name: values for name, values in parameters.items() if name not in _PAGING},
        query=query_without(request, _AFTER),
    )


def _parse_limit(value: str | None) -> int | None:
    if value is None:
        return None
    if (limit := bounded_number(value, 1, _MAX_COUNT)) is None:
        raise invalid_param("limit", f"{value!r} is not a number from 1 on")
    return limit


def _parse_wait(value: str | None) -> float:
    if value is None:
        return 0
    if not _SECONDS.match(value) or float(value) > MAX_WAIT:
        raise invalid_param("wait", f"{value!r} is not a number of seconds from 0 to {MAX_WAIT}")
    return float(value)

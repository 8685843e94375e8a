"""What a request asks a feed for: where to begin, how much of it, and how long to wait.

A parameter that is not known is refused: what was meant to leave events out would otherwise let all of them in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_plus

from api.request import Request
from domain.problems import BadRequest, Problem

#: Events of an answer at most that is made as a whole before it is sent.
MOST: Final = 10_000
#: Seconds that a reader may wait for the first event.
LONGEST: Final = 60

_AFTER: Final = "after"
_RESUMED: Final = b"last-event-id"
_NUMBER: Final = re.compile(r"[0-9]{1,18}\Z")
_SECONDS: Final = re.compile(r"[0-9]{1,2}(?:\.[0-9]{1,3})?\Z")
_SWITCH: Final = {"": True, "true": True, "false": False}
_PAGING: Final = (_AFTER, "limit", "wait")

#: Values by parameter, at least one each.
Given = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Asked:
    """after: a moment of the log in text, and the name that it was given under. limit: None for no number.

    given: the parameters that choose events. query: the raw query without `after`, for the link onwards.
    """

    after: str
    name: str
    limit: int | None
    wait: float
    given: Given
    query: str


def asked(request: Request, choosing: Iterable[str] = ()) -> Asked:
    """What a request asks for. choosing: names of the parameters that choose events. Raises: BadRequest."""
    given = parameters(request, {*_PAGING, *choosing})
    resumed = request.header(_RESUMED)
    after = resumed if resumed else single(given, _AFTER) or "0"
    return Asked(
        after=after.strip(),
        name=_RESUMED.decode() if resumed else _AFTER,
        limit=_limit(single(given, "limit")),
        wait=_wait(single(given, "wait")),
        given={name: values for name, values in given.items() if name not in _PAGING},
        query=_onwards(request.query.decode("latin-1")),
    )


def parameters(request: Request, known: Iterable[str]) -> Given:
    """Decoded values by parameter. Raises: BadRequest for one that is not known."""
    known, given = set(known), dict[str, list[str]]()
    for parameter in filter(None, request.query.decode("latin-1").split("&")):
        name, _, value = parameter.partition("=")
        given.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    for name in given:
        if name not in known:
            raise refused(name, f"there is no such parameter here, only {', '.join(sorted(known)) or 'none'}")
    return given


def single(given: Given, name: str) -> str | None:
    """The value of a parameter that may appear once. Raises: BadRequest."""
    values = given.get(name, [])
    if len(values) > 1:
        raise refused(name, "it may appear once only")
    return values[0] if values else None


def switched(given: Given, name: str) -> bool:
    """Whether a parameter that needs no value is there. Raises: BadRequest."""
    value = single(given, name)
    if value not in (None, *_SWITCH):
        raise refused(name, f"it takes {' or '.join(filter(None, _SWITCH))}, or no value")
    return value is not None and _SWITCH[value]


def refused(name: str, reason: str) -> Problem:
    """The problem of a parameter whose value will not do."""
    return BadRequest(error_detail=f'the parameter "{name}": {reason}')


def _limit(value: str | None) -> int | None:
    if value is None:
        return None
    if not _NUMBER.match(value) or not int(value):
        raise refused("limit", f"{value!r} is no number from 1 on")
    return int(value)


def _wait(value: str | None) -> float:
    if value is None:
        return 0
    if not _SECONDS.match(value) or float(value) > LONGEST:
        raise refused("wait", f"{value!r} is no number of seconds from 0 to {LONGEST}")
    return float(value)


def _onwards(query: str) -> str:
    kept = (part for part in query.split("&") if part and unquote_plus(part.partition("=")[0]) != _AFTER)
    return "&".join(kept)

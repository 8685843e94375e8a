"""Query parameters of the audit trail, and the log range that they select."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_plus

from api.audit.formats import TableFormat
from api.audit.representations import IMAGES
from domain.errors.problems import BadRequest
from projections.audit.trail import LogRange
from projections.log.reader import Log

#: Maximum number of items in a page.
MAX_LIMIT: Final = 1000

_NUMBER: Final = re.compile(r"[0-9]{1,18}\Z")
_SWITCH: Final = {"": True, "true": True, "false": False}
_ORDERS: Final = {"asc": False, "desc": True}


@dataclass(frozen=True, slots=True)
class AuditParams:
    """The parameters of one request; None for absent ones.

    images: `before`, `after` or both. below: whether to include everything below the entity. after, limit: of a page.
    start, end: moments as given (`from`; `until` or `to`): the result covers what came after the first, up to the
    second.
    """

    images: tuple[str, ...] = ()
    below: bool | None = None
    backwards: bool = False
    after: int | None = None
    limit: int | None = None
    start: str | None = None
    end: str | None = None
    caller: str | None = None
    format: TableFormat | None = None


def parse_audit_params(query: bytes, names: Collection[str]) -> AuditParams:
    """The parameters of a query. names: the accepted ones; others are ignored.

    Raises: BadRequest, which names the parameter and its rule.
    """
    found: dict[str, Any] = {}
    for part in query.decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if (name := unquote_plus(name)) not in names:
            continue
        field, parse = _PARAMETERS[name]
        if field in found:
            raise BadRequest(error_detail=f'"{name}" appears more than once')
        found[field] = _parsed(name, unquote_plus(value), parse)
    return AuditParams(**found)


def requested_span(asked: AuditParams, log: Log, now: datetime, end: str = "until") -> LogRange:
    """The log range of a request. end: name of the parameter for its end. Raises: BadRequest."""
    after = log.as_of(asked.start, now, "from").last if asked.start is not None else 0
    head = log.head().last
    until = log.as_of(asked.end, now, end).last if asked.end is not None else head
    if asked.after is not None:
        if asked.after > head:
            raise BadRequest(error_detail=f'"after={asked.after}" is not allowed: the log ends at position {head}')
        after, until = (after, min(until, asked.after - 1)) if asked.backwards else (max(after, asked.after), until)
    return LogRange(after, until, asked.backwards)


def _parsed(name: str, value: str, parse: Callable[[str], Any]) -> Any:
    try:
        if "\0" in value:
            raise ValueError("it holds the character U+0000")
        return parse(value)
    except ValueError as error:
        raise BadRequest(error_detail=f'"{name}={value}" is not allowed: {error}') from None


def _images(value: str) -> tuple[str, ...]:
    wanted = value.split(",") if value else IMAGES
    if not set(wanted) <= set(IMAGES):
        raise ValueError("it takes before, after, or both with a comma")
    return tuple(name for name in IMAGES if name in wanted)


def _one_of(values: dict[str, Any]) -> Callable[[str], Any]:
    def parse(value: str) -> Any:
        if value not in values:
            raise ValueError(f"it takes {' or '.join(filter(None, values))}")
        return values[value]

    return parse


def _position(value: str) -> int:
    if not _NUMBER.match(value):
        raise ValueError("it takes a position of the log")
    return int(value)


def _limit(value: str) -> int:
    if not _NUMBER.match(value) or not 0 < int(value) <= MAX_LIMIT:
        raise ValueError(f"it takes a number from 1 to {MAX_LIMIT}")
    return int(value)


#: The parameters by name: the field that each fills, and its parser.
_PARAMETERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "images": ("images", _images),
    "below": ("below", _one_of(_SWITCH)),
    "order": ("backwards", _one_of(_ORDERS)),
    "after": ("after", _position),
    "limit": ("limit", _limit),
    "from": ("start", str),
    "until": ("end", str),
    "to": ("end", str),
    "caller": ("caller", str),
    "format": ("format", _one_of({format.value: format for format in TableFormat})),
}

"""Query parameters of the audit trail, and the log range that they select."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote_plus

from annals.api.audit.formats import TableFormat
from annals.api.audit.representations import IMAGES
from annals.api.http.query_params import bounded_number, check_without_asof
from annals.api.http.request import Request
from annals.domain.errors.problems import BadRequest
from annals.projections.audit.trail import LogRange
from annals.projections.log.reader import MAX_POSITION, Log

#: Maximum number of items in a page.
MAX_LIMIT: Final = 1000
#: Maximum number of entities that a list of interactions names for each.
MAX_XIDS: Final = 10

_SWITCH: Final = {"": True, "true": True, "false": False}
_ORDERS: Final = {"asc": False, "desc": True}


@dataclass(frozen=True, slots=True)
class AuditParams:
    """The parameters of one request; None for absent ones.

    images: `before`, `after` or both. below: whether to include everything below the entity. after, limit: of a page.
    start, end: moments as given (`from`; `until` or `to`): the result covers what came after the first, up to the
    second. id: of the interaction that the result is limited to. xids: the number of entities to name for each
    interaction.
    """

    images: tuple[str, ...] = ()
    below: bool | None = None
    backwards: bool = False
    after: int | None = None
    limit: int | None = None
    start: str | None = None
    end: str | None = None
    caller: str | None = None
    id: str | None = None
    xids: int = 0
    format: TableFormat | None = None


def parse_audit_params(query: bytes, names: Collection[str]) -> AuditParams:
    """The parameters of a query. names: the accepted ones; others are ignored.

    Raises: BadRequest, which names the parameter and its rule.
    """
    fields: dict[str, Any] = {}
    for part in query.decode("latin-1").split("&"):
        name, _, value = part.partition("=")
        if (name := unquote_plus(name)) not in names:
            continue
        field, parse = _PARAMETERS[name]
        if field in fields:
            raise BadRequest(error_detail=f'"{name}" appears more than once')
        fields[field] = _parse_value(name, unquote_plus(value), parse)
    return AuditParams(**fields)


def parse_log_params(request: Request, names: Collection[str]) -> AuditParams:
    """The parameters of a request about a part of the log, which takes no `asof`. names: see `parse_audit_params`.

    Raises: BadRequest.
    """
    check_without_asof(request, names)
    return parse_audit_params(request.query, names)


def requested_range(audit_params: AuditParams, log: Log, now: datetime) -> LogRange:
    """The log range of a request. Raises: BadRequest."""
    after = log.as_of(audit_params.start, now, "from").last if audit_params.start is not None else 0
    head = log.head().last
    last_position = log.as_of(audit_params.end, now, "until").last if audit_params.end is not None else head
    if audit_params.id is not None:
        interaction = log.interaction(audit_params.id)
        if interaction is None:
            return LogRange(0, 0, audit_params.backwards)
        after, last_position = max(after, interaction.first - 1), min(last_position, interaction.last)
    if audit_params.after is not None:
        if audit_params.after > head:
            raise BadRequest(
                error_detail=f'"after={audit_params.after}" is not allowed: the log ends at position {head}'
            )
        after, last_position = (
            (after, min(last_position, audit_params.after - 1))
            if audit_params.backwards
            else (max(after, audit_params.after), last_position)
        )
    return LogRange(after, last_position, audit_params.backwards)


def _parse_value(name: str, value: str, parse: Callable[[str], Any]) -> Any:
    try:
        if "\0" in value:
            raise ValueError("it holds the character U+0000")
        return parse(value)
    except ValueError as error:
        raise BadRequest(error_detail=f'"{name}={value}" is not allowed: {error}') from None


def _parse_images(value: str) -> tuple[str, ...]:
    image_names = value.split(",") if value else IMAGES
    if not set(image_names) <= set(IMAGES):
        raise ValueError("it takes before, after, or both with a comma")
    return tuple(name for name in IMAGES if name in image_names)


def _choice_parser(values: dict[str, Any]) -> Callable[[str], Any]:
    def parse(value: str) -> Any:
        if value not in values:
            raise ValueError(f"it takes {' or '.join(filter(None, values))}")
        return values[value]

    return parse


def _parse_position(value: str) -> int:
    if (position := bounded_number(value, 0, MAX_POSITION)) is None:
        raise ValueError("it takes a position of the log")
    return position


def _number_parser(max_value: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if (number := bounded_number(value, 1, max_value)) is None:
            raise ValueError(f"it takes a number from 1 to {max_value}")
        return number

    return parse


#: The parameters by name: the field that each fills, and its parser.
_PARAMETERS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "images": ("images", _parse_images),
    "below": ("below", _choice_parser(_SWITCH)),
    "order": ("backwards", _choice_parser(_ORDERS)),
    "after": ("after", _parse_position),
    "limit": ("limit", _number_parser(MAX_LIMIT)),
    "from": ("start", str),
    "until": ("end", str),
    "to": ("end", str),
    "caller": ("caller", str),
    "id": ("id", str),
    "xids": ("xids", _number_parser(MAX_XIDS)),
    "format": ("format", _choice_parser({format.value: format for format in TableFormat})),
}

"""The query parameters of `/-/references`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from annals.api.audit.request_params import AuditParams, parse_audit_params
from annals.api.http.query_params import invalid_param, is_switched_on, parse_number, query_params, single_value
from annals.api.http.request import Request

#: The directions, in the order of a response: references of the entity, and those that lead to it.
OUT: Final = "out"
IN: Final = "in"
DIRECTIONS: Final = (OUT, IN)
#: The maximum number of references that lead from one entity to another over others.
MAX_DEPTH: Final = 10
#: The accepted parameters. Others are refused, because a misspelt one would return more than intended.
PARAMETERS: Final = ("direction", "depth", "below", "after", "limit", "asof", "format")

_COMMON_PARAMETERS: Final = ("limit", "format")
_AFTER: Final = re.compile(r"(out|in):([0-9]{1,9}):(/.*)\Z", re.DOTALL)


class ReferenceCursor(NamedTuple):
    """The reference to continue after. number: of references of the source in this direction already returned."""

    direction: str
    number: int
    source: str

    @property
    def text(self) -> str:
        """The value of the parameter `after`."""
        return f"{self.direction}:{self.number}:{self.source}"


@dataclass(frozen=True, slots=True)
class ReferenceParams:
    """The parameters of a request. depth: the number of references to follow. below: see `EntityReferences`."""

    audit_params: AuditParams
    directions: tuple[str, ...]
    depth: int
    below: bool
    after: ReferenceCursor | None
    asof: str | None


def parse_reference_params(request: Request) -> ReferenceParams:
    """The parameters of a request. Raises: BadRequest, which names the parameter and its rule."""
    parameters = query_params(request, PARAMETERS)
    depth = parse_number("depth", single_value(parameters, "depth"), 1, MAX_DEPTH) or 1
    below = is_switched_on(parameters, "below")
    if below and depth > 1:
        raise invalid_param("below", "it cannot be combined with a depth of more than 1")
    return ReferenceParams(
        parse_audit_params(request.query, _COMMON_PARAMETERS),
        _parse_directions(single_value(parameters, "direction")),
        depth,
        below,
        _parse_after(single_value(parameters, "after")),
        single_value(parameters, "asof"),
    )


def _parse_directions(value: str | None) -> tuple[str, ...]:
    names = frozenset(DIRECTIONS if value is None else value.split(","))
    if not names <= frozenset(DIRECTIONS):
        raise invalid_param("direction", "it takes in, out, or both with a comma")
    return tuple(name for name in DIRECTIONS if name in names)


def _parse_after(value: str | None) -> ReferenceCursor | None:
    if value is None:
        return None
    match = _AFTER.match(value)
    if match is None:
        raise invalid_param("after", "it takes what a link to the next page has")
    return ReferenceCursor(match[1], int(match[2]), match[3])

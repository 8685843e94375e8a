"""Query parameters of surfaces that refuse unknown ones.

A misspelt filter would otherwise let through what it was meant to exclude.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qs, unquote_plus

from annals.api.http.request import Request
from annals.domain.errors.problems import BadRequest, Problem

_SWITCH: Final = {"": True, "true": True, "false": False}


#: Values by parameter, at least one each.
QueryParams = Mapping[str, list[str]]


def query_params(request: Request, known_names: Iterable[str]) -> QueryParams:
    """Decoded values by parameter. Raises: BadRequest for an unknown parameter."""
    known_names, parameters = set(known_names), all_query_params(request)
    for name in parameters:
        if name not in known_names:
            raise _unknown_param(name, known_names)
    return parameters


def check_without_asof(request: Request, known_names: Iterable[str]) -> None:
    """Checks that a request of a path without a past does not ask for one, where other unknown parameters are ignored.

    It would get the present, or all of the past, and take it for the moment. Raises: BadRequest.
    """
    if "asof" in all_query_params(request):
        raise _unknown_param("asof", known_names)


def all_query_params(request: Request) -> QueryParams:
    """Decoded values by parameter, known or not."""
    return parse_qs(request.query.decode("latin-1"), keep_blank_values=True)


def single_value(parameters: QueryParams, name: str) -> str | None:
    """The value of a parameter that may appear once. Raises: BadRequest."""
    values = parameters.get(name, [])
    if len(values) > 1:
        raise invalid_param(name, "it may appear only once")
    return values[0] if values else None


def parse_number(name: str, value: str | None, minimum: int, maximum: int) -> int | None:
    """The value of a parameter as a number; None for none. Raises: BadRequest."""
    if value is None:
        return None
    if (number := bounded_number(value, minimum, maximum)) is None:
        raise invalid_param(name, f"{value!r} is not a number from {minimum} to {maximum}")
    return number


def bounded_number(text: str, minimum: int, maximum: int) -> int | None:
    """The number that a text of ASCII digits means; None for another text, and for a number beyond the bounds.

    Leading zeros do not count. A minus sign is accepted if the minimum is below 0.
    """
    sign, digits = ("-", text[1:]) if minimum < 0 and text.startswith("-") else ("", text)
    if not (digits.isascii() and digits.isdecimal()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > max(len(str(minimum)), len(str(maximum))):  # Python refuses to convert thousands of digits
        return None
    number = int(sign + digits)
    return number if minimum <= number <= maximum else None


def is_switched_on(parameters: QueryParams, name: str) -> bool:
    """Whether a parameter without a required value is present and not `false`. Raises: BadRequest."""
    value = single_value(parameters, name)
    if value not in (None, *_SWITCH):
        raise invalid_param(name, f"it takes {' or '.join(filter(None, _SWITCH))}, or no value")
    return value is not None and _SWITCH[value]


def query_without(request: Request, *names: str) -> str:
    """The raw query of a request without some parameters."""
    parts = (part for part in request.query.decode("latin-1").split("&") if part)
    return "&".join(part for part in parts if unquote_plus(part.partition("=")[0]) not in names)


def _unknown_param(name: str, known_names: Iterable[str]) -> Problem:
    return invalid_param(name, f"it is unknown; this path takes: {', '.join(sorted(known_names)) or 'none'}")


def invalid_param(name: str, reason: str) -> Problem:
    """The problem of a parameter with an invalid value."""
    return BadRequest(error_detail=f'the parameter "{name}": {reason}')

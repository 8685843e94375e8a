"""Reads attributes whose shape is not validated: below `*` a client may store anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

AttributePath = tuple[str | int, ...]

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_MEDIA_TYPE: Final = re.compile(r"([^/;\s]+)/([^/;\s]+)[ \t]*((?:;.*)?)\Z", re.DOTALL)
_PARAMETER: Final = re.compile(r'[ \t]*;[ \t]*(?:([^\s=;"]+)=("(?:[^"\\]|\\.)*"|[^\s;"]+)[ \t]*)?')


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a JSON object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def as_sequence(value: Any) -> Sequence[Any]:
    """The value if it is a JSON array, otherwise an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: Any) -> str | None:
    """The value if it is a string."""
    return value if isinstance(value, str) else None


def as_texts(value: Any) -> list[str]:
    """The strings of an array."""
    return [item for item in as_sequence(value) if isinstance(item, str)]


def as_integer(value: Any) -> int | None:
    """The value if it is an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def protocol_options(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `protocoloptions` of an endpoint or a message."""
    return as_mapping(attributes.get("protocoloptions"))


def strings(value: Any, path: AttributePath) -> Iterator[tuple[AttributePath, str]]:
    """Every string at and below a value with its path, including keys of objects; `description` is left out."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            if key != "description":
                yield (*path, key), key
                yield from strings(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from strings(item, (*path, index))


def is_token(value: str) -> bool:
    """Whether a text is a token of HTTP (RFC 9110), as methods and names of headers are."""
    return bool(_TOKEN.match(value))


def parse_media_type(value: str) -> tuple[str, frozenset[tuple[str, str]]] | None:
    """A media type and its parameters, in the case for comparisons; None if the text is not a media type (MS-66)."""
    match = _MEDIA_TYPE.match(value)
    if match is None or not (is_token(match[1]) and is_token(match[2])):
        return None
    parameters, offset, parameter_text = set[tuple[str, str]](), 0, match[3]
    while offset < len(parameter_text):
        parameter = _PARAMETER.match(parameter_text, offset)
        if parameter is None:
            return None
        if parameter[1]:
            if not is_token(parameter[1]):
                return None
            parameters.add((parameter[1].casefold(), parameter[2].strip('"')))
        offset = parameter.end()
    return f"{match[1]}/{match[2]}".casefold(), frozenset(parameters)

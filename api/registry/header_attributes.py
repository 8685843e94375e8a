"""Converts attributes to `xRegistry-` headers and back.

Spec: HTTP binding 1.0-rc4, "Serializing Resource Domain-Specific Documents", "HTTP Header Values".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from annals.api.http.response import CORRELATION_HEADER, Headers
from annals.domain.errors import problems
from annals.domain.model import ResourceType
from annals.domain.values.header_values import InvalidHeaderValue, decode, encode, encode_text
from annals.domain.values.json_text import InvalidJson, Json, dumps, loads

HEADER_PREFIX: Final = "xregistry-"

#: The value of a header that deletes its attribute.
NULL_VALUE: Final = "null"
SCALAR_TYPES: Final = frozenset(
    (
        *("boolean", "string", "integer", "uinteger", "decimal", "timestamp", "uritemplate", "xid", "xidtype"),
        *("uri", "uriabsolute", "urirelative", "url", "urlabsolute", "urlrelative"),
    )
)

#: A string that a header can hold without encoding.
_PLAIN: Final = re.compile(r"[\x21\x23\x24\x26-\x7e]*\Z")


class HeaderCodec:
    """Converts a Resource type's attributes to headers: scalars and maps of scalars; other values have no header."""

    def __init__(self, type: ResourceType) -> None:
        self.type = type
        self._types: dict[str, str] = dict(_header_types(type.version.definitions))

    def encode(self, attributes: Mapping[str, Json]) -> Headers:
        """The headers of attributes, in their order.

        Values that are not scalars or maps of scalars are left out, and so are entries whose key no header can have.
        """
        headers: Headers = []
        for name, value in attributes.items():
            if isinstance(value, dict):
                headers.extend(self._map_headers(name, value))
            elif not isinstance(value, list) and name != "contenttype":
                headers.append((_header_name(name), _header_value(value)))
        return headers

    def decode(self, headers: Iterable[tuple[str, str]], xid: str) -> dict[str, Json]:
        """The attributes in the headers of a document write.

        headers: names in lower case without prefix, and raw values.
        Raises: ExtraXregistryHeader, HeaderError, InvalidAttribute.
        """
        attributes: dict[str, Json] = {}
        for header, raw_value in headers:
            name, _, key = header.partition(".")
            self._check_header(header)
            value = _decode_value(header, raw_value)
            if key:
                self._put_entry(attributes, name, key, value, xid)
            elif name in attributes:
                raise problems.HeaderError(name=HEADER_PREFIX + header, error_detail="it is given more than once")
            else:
                kind = self._types.get(name, self._types.get("*", "string"))
                attributes[name] = None if value == NULL_VALUE else _parse_value(kind, value, xid, name)
        return attributes

    def _map_headers(self, name: str, value: Mapping[str, Json]) -> Iterator[tuple[bytes, bytes]]:
        if self._types.get(name, self._types.get("*")) == "map":
            for key, item in value.items():
                if ":" not in key:  # which the name of a header cannot have
                    yield _header_name(f"{name}.{key}"), _header_value(item)

    def _check_header(self, header: str) -> None:
        for name in (self.type.singular, f"{self.type.singular}base64", "contenttype"):
            if header == name:
                detail = (
                    "use the header Content-Type instead" if name == "contenttype" else "send the document as the body"
                )
                raise problems.ExtraXregistryHeader(name=HEADER_PREFIX + header, error_detail=detail)

    def _put_entry(self, attributes: dict[str, Json], name: str, key: str, value: str, xid: str) -> None:
        entries = attributes.setdefault(name, {})
        if not isinstance(entries, dict) or key in entries:
            raise problems.HeaderError(name=f"{HEADER_PREFIX}{name}.{key}", error_detail="it is given more than once")
        if self._types.get(name) in ("array", "object"):
            _parse_value("object", value, xid, name)
        if value != NULL_VALUE:
            entries[key] = _parse_value(self._types.get(f"{name}.*", "string"), value, xid, f"{name}.{key}")


def contenttype_headers(attributes: Mapping[str, Json]) -> Headers:
    """The Content-Type header of a document; none if no `contenttype` is stored."""
    contenttype = attributes.get("contenttype")
    return [] if contenttype is None else [(b"content-type", encode_text(contenttype).encode())]


def xregistry_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """The `xRegistry-` headers of a request, names without prefix.

    The correlation id is skipped: clients cannot choose it.
    """
    prefix = HEADER_PREFIX.encode()
    return [
        (name.decode("latin-1").lower().removeprefix(HEADER_PREFIX), value.decode("latin-1"))
        for name, value in headers
        if name.lower().startswith(prefix) and name.lower() != CORRELATION_HEADER
    ]


def _header_types(definitions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Types by attribute name, `*` for extensions.

    A map of scalars adds the type of its items as `<name>.*`; any other map counts as an object. Conditional attributes
    (`ifvalues`) are included; the registry checks later whether they apply. Attributes that clients cannot set stay
    strings, so that invalid values in them do not matter; an epoch is parsed, because it is compared.
    """
    for name, definition in definitions.items():
        item = definition.get("item", {}).get("type")
        kind = definition.get("type", "any") if name == "epoch" or not definition.get("readonly") else "any"
        yield name, "object" if kind == "map" and item not in SCALAR_TYPES else kind
        if kind == "map" and item in SCALAR_TYPES:
            yield f"{name}.*", item
        for branch in definition.get("ifvalues", {}).values():
            yield from _header_types(branch.get("siblingattributes", {}))


@lru_cache(maxsize=4096)
def _header_name(name: str) -> bytes:
    return f"{HEADER_PREFIX}{name}".encode()


def _header_value(value: Json) -> bytes:
    if isinstance(value, str):
        return (value if _PLAIN.match(value) else encode(value)).encode()
    return dumps(value)


def _decode_value(header: str, raw_value: str) -> str:
    try:
        return decode(raw_value)
    except InvalidHeaderValue as error:
        raise problems.HeaderError(name=HEADER_PREFIX + header, error_detail=str(error)) from None


def _parse_value(kind: str, value: str, xid: str, path: str) -> Json:
    try:
        return _PARSERS.get(kind, str)(value)
    except ValueError as error:
        raise problems.InvalidAttribute(xid, name=path, error_detail=str(error)) from None


def _parse_boolean(value: str) -> bool:
    if value not in ("true", "false"):
        raise ValueError("true or false is needed")
    return value == "true"


def _parse_number(value: str) -> Json:
    try:
        number = loads(value)
    except InvalidJson:
        number = None
    if isinstance(number, bool) or not isinstance(number, (int, float, Decimal)):
        raise ValueError("a number is needed")
    return number


def _refuse_value(value: str) -> Json:
    raise ValueError("a header cannot hold a value of its type")


_PARSERS: Final[dict[str, Callable[[str], Json]]] = {
    "boolean": _parse_boolean,
    **dict.fromkeys(("integer", "uinteger", "decimal"), _parse_number),
    **dict.fromkeys(("map", "array", "object"), _refuse_value),
}

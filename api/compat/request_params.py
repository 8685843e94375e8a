"""Reads requests of the legacy APIs: query parameters, attributes in headers or query, and the body.

Rules LEG-204, LEG-501 to LEG-505, LEG-512, LEG-513.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from starlette.types import Receive

from annals.api.compat.paths import CompatTarget
from annals.api.http.limits import read_body
from annals.api.http.request import Request
from annals.domain.compat import formats
from annals.domain.compat.document_attributes import DocumentAttributes, request_names
from annals.domain.compat.errors import invalid_definition
from annals.domain.compat.legacy_apis import LegacyApi
from annals.domain.errors import problems
from annals.domain.errors.http_errors import BodyTooLarge, UnsupportedCoding, UnsupportedMediaType
from annals.domain.errors.problems import BadRequest
from annals.domain.values.header_values import InvalidHeaderValue, decode
from annals.domain.values.json_text import InvalidJson, loads

#: Parameters that the code names; the descriptions say where each is.
ASOF: Final = "asof"
DRYRUN: Final = "dryrun"
LIMIT: Final = "limit"
AFTER: Final = "after"
URI: Final = "uri"

#: Attributes that may be empty. An empty value differs from an absent one.
_TEXT_NAMES: Final = frozenset(("description", "about"))
_CONTENT_ENCODING: Final = b"content-encoding"
_CONTENT_TYPE: Final = b"content-type"


def query_params(request: Request, target: CompatTarget) -> Mapping[str, str]:
    """Decoded values by parameter name. They are percent-encoded only: a plus sign is a plus sign, not a space.

    Raises: BadFlag for `asof` on a write or `dryrun` on a read; BadRequest for an unknown or repeated parameter, and
    for values that are not UTF-8.
    """
    known_names = target.path.parameters["GET" if request.is_read else request.method]
    parameters: dict[str, str] = {}
    for parameter in filter(None, request.query.decode("latin-1").split("&")):
        raw_name, _, value = parameter.partition("=")
        name = _percent_decode(raw_name, "the query")
        if name not in known_names:
            if name in (ASOF, DRYRUN):
                raise problems.BadFlag(flag=name)
            reason = f"it is unknown; this path takes: {', '.join(sorted(known_names))}"
            raise invalid_definition(name, reason, "LEG-501")
        if name in parameters:
            raise invalid_definition(name, "it may appear only once", "LEG-212" if name == URI else "LEG-501")
        parameters[name] = _percent_decode(value, f'the parameter "{name}"')
    return parameters


def parse_attributes(request: Request, family: LegacyApi, parameters: Mapping[str, str]) -> DocumentAttributes:
    """The attributes of a POST request. parameters: its query parameters.

    Raises: InvalidDefinition if the query, the headers and the media type contradict each other (LEG-501, LEG-504).
    """
    attributes: dict[str, str] = {}
    for name, (parameter, header) in request_names(family).items():
        values = {*([parameters[parameter]] if parameter in parameters else []), *_header_values(request, header)}
        if len(values) > 1:
            raise invalid_definition(
                parameter, f"the query and the header {header} have different values for it", "LEG-501"
            )
        value = values.pop() if values else None
        if value or (value is not None and name in _TEXT_NAMES):
            attributes[name] = value
    return DocumentAttributes(**_with_format_of(request, attributes))


def sent_content_type(request: Request) -> str | None:
    """The media type of the document as the client sent it; None if the client sent none."""
    return request.header(_CONTENT_TYPE) or None


async def read_content(request: Request, receive: Receive, max_size: int) -> bytes:
    """The bytes of a body, decompressed if its coding is gzip.

    max_size: in bytes, both compressed and decompressed. Raises: UnsupportedCoding, BodyTooLarge,
    BadRequest, ClientDisconnect.
    """
    coding = (request.header(_CONTENT_ENCODING) or "identity").strip().lower()
    if coding == "identity":
        return await read_body(request, receive, max_size)
    if coding not in ("gzip", "x-gzip"):
        raise UnsupportedCoding(coding=coding)
    other_headers = [header for header in request.headers if header[0] != _CONTENT_ENCODING]
    return _gunzip(await read_body(request.with_headers(other_headers), receive, max_size), max_size)


async def read_object(request: Request, receive: Receive, max_size: int) -> dict[str, Any]:
    """The JSON object of a body; an empty object if there is no body.

    Raises: UnsupportedMediaType, ParsingData, InvalidDefinition for JSON that is not an object, and what `read_content`
    raises.
    """
    content = await read_content(request, receive, max_size)
    if not content:
        return {}
    check_json_media_type(request)
    try:
        members = loads(content)
    except InvalidJson as error:
        raise problems.ParsingData(error_detail=str(error)) from None
    if not isinstance(members, dict):
        raise invalid_definition("body", "a JSON object is needed", "LEG-204")
    return members


def check_json_media_type(request: Request) -> None:
    """Checks that the media type of a body is JSON. A request without a media type counts as JSON (LEG-204).

    Raises: UnsupportedMediaType.
    """
    contenttype = sent_content_type(request)
    kind = (contenttype or "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise UnsupportedMediaType(list="application/json, *+json")


def _with_format_of(request: Request, attributes: dict[str, str]) -> dict[str, str]:
    """The attributes with the format that the media type names, if no other place names a format (LEG-504).

    Raises: InvalidDefinition if the media type and another place name different formats.
    """
    try:
        media_type_format = formats.format_parameter(sent_content_type(request) or "")
    except ValueError as error:
        raise invalid_definition("format", str(error), "LEG-504") from None
    if media_type_format is None:
        return attributes
    given_format = attributes.setdefault("format", media_type_format)
    if not formats.is_same_format(given_format, media_type_format):
        raise invalid_definition(
            "format", f"the media type says {media_type_format!r}, the request {given_format!r}", "LEG-504"
        )
    return attributes


def _header_values(request: Request, name: str) -> list[str]:
    """The decoded values of a header. Raises: HeaderError."""
    lower_name = name.lower().encode()
    try:
        return [decode(value.decode("latin-1")) for key, value in request.headers if key == lower_name]
    except InvalidHeaderValue as error:
        raise problems.HeaderError(name=name, error_detail=str(error)) from None


def _percent_decode(text: str, location: str) -> str:
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise BadRequest(error_detail=f"{location} is not percent-encoded UTF-8") from None


def _gunzip(content: bytes, max_size: int) -> bytes:
    """The content of a gzip body. Raises: BodyTooLarge before it holds more than `max_size` + 1 bytes; BadRequest."""
    reader = zlib.decompressobj(31)
    try:
        decompressed = reader.decompress(content, max_size + 1)
    except zlib.error as error:
        raise BadRequest(error_detail=f"the body is not gzip: {error}") from None
    if len(decompressed) > max_size:
        raise BodyTooLarge(max_size=max_size)
    if not reader.eof or reader.unused_data:
        raise BadRequest(error_detail="the body is not exactly one whole gzip member")
    return decompressed

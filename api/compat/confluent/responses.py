"""Answers and errors in the media types of Confluent's clients (CSR-104 to CSR-106, CSR-112 to CSR-114)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

from annals.api.compat.confluent.own_port import path_as_sent
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.domain.confluent.errors import SchemaRegistryError
from annals.domain.errors.http_errors import BodyTooLarge, Forbidden, Unauthorized
from annals.domain.errors.problems import Problem
from annals.domain.values.json_text import dumps

#: The media types of answers, the preferred one first.
MEDIA_TYPES: Final = (
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
)
_ANY_TYPES: Final = ("*", "application/*")
#: Ranges that mean any type, also the malformed ones that clients send.
_ANY_TYPE: Final = re.compile(r"\*/.*\Z")
#: The least bytes of a piece of a list, but for the last one.
_CHUNK_BYTES: Final = 64 << 10
REQUEST_ID: Final = b"x-request-id"
#: Statuses of problems that only the state of the registry explains; this API has one code for all of them.
_REFUSALS: Final = (400, 409, 412)


def json_response(request: Request, body: Any, status: int = 200, headers: Headers | None = None) -> Response:
    """A JSON answer in the media type that the client prefers. Raises: SchemaRegistryError if it accepts none."""
    media_type = negotiate_media_type(request.header(b"accept"))
    return Response(
        status, [(b"content-type", media_type.encode()), request_id(request), *(headers or [])], dumps(body)
    )


def list_chunks(members: Iterable[Any]) -> Iterator[bytes]:
    """A JSON array in pieces; at least one."""
    text, separator = bytearray(b"["), b""
    for member in members:
        text += separator + dumps(member)
        separator = b","
        if len(text) >= _CHUNK_BYTES:
            yield bytes(text)
            text.clear()
    yield bytes(text) + b"]"


def text_response(request: Request, text: str) -> Response:
    """The text of a schema, without quotes around it."""
    media_type = negotiate_media_type(request.header(b"accept"))
    return Response(200, [(b"content-type", media_type.encode()), request_id(request)], text.encode())


def no_content_response(request: Request, headers: Headers | None = None) -> Response:
    return Response(204, [request_id(request), *(headers or [])])


def error_response(request: Request, error: SchemaRegistryError, headers: Headers | None = None) -> Response:
    """The answer to a refused request, in the preferred media type where the client accepts none."""
    try:
        media_type = negotiate_media_type(request.header(b"accept"))
    except SchemaRegistryError:
        media_type = MEDIA_TYPES[0]
    body = dumps({"error_code": error.code, "message": error.message})
    return Response(error.status, [(b"content-type", media_type.encode()), request_id(request), *(headers or [])], body)


def problem_error(problem: Problem, request: Request) -> SchemaRegistryError:
    """The error for a problem of the registry (CSR-517)."""
    text = problem.text(path_as_sent(request))
    match problem:
        case Forbidden():
            return SchemaRegistryError(40301, text)
        case Unauthorized():
            return SchemaRegistryError(401, text)
        case BodyTooLarge():
            return SchemaRegistryError(42209, text)
        case _:
            code = 42205 if problem.status in _REFUSALS else problem.status
            return SchemaRegistryError(code, f"{text} {problem.detail}" if problem.detail else text)


def status_error(status: int) -> SchemaRegistryError:
    """The error for a request that has no number of its own."""
    return SchemaRegistryError(status, f"HTTP {status} {HTTPStatus(status).phrase}")


def negotiate_media_type(accept: str | None) -> str:
    """The best media type for an Accept header. Raises: SchemaRegistryError, 406."""
    if accept is None or not accept.strip():
        return MEDIA_TYPES[0]
    ranges = [_parse_range(part) for part in accept.split(",") if part.strip()]
    qualities = {media_type: _quality(media_type, ranges) for media_type in MEDIA_TYPES}
    best = max(qualities.values())
    if best <= 0:
        raise status_error(406)
    return next(media_type for media_type, quality in qualities.items() if quality == best)


def request_id(request: Request) -> tuple[bytes, bytes]:
    """The id of the request: the client's if it sent exactly one, else a new one (CSR-114)."""
    sent = [value for name, value in request.headers if name == REQUEST_ID and value.strip()]
    return REQUEST_ID, sent[0] if len(sent) == 1 else str(uuid4()).encode()


def _parse_range(text: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip() for part in text.split(";"))
    quality = next((part.partition("=")[2] for part in parameters if part.lower().startswith("q=")), "1")
    try:
        return media_range.lower(), float(quality)
    except ValueError:
        return media_range.lower(), 0.0


def _quality(media_type: str, ranges: list[tuple[str, float]]) -> float:
    exact = [quality for media_range, quality in ranges if media_range == media_type]
    if exact:
        return max(exact)
    return max((quality for one, quality in ranges if one in _ANY_TYPES or _ANY_TYPE.match(one)), default=0.0)

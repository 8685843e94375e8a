"""Limits of a request: body size, content coding, number of rows, and valid paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar
from urllib.parse import unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from annals.api.http.request import Request
from annals.domain.errors.http_errors import BodyTooLarge
from annals.domain.errors.problems import BadRequest, TooLarge

T = TypeVar("T")
MAX_BODY: Final = 256 << 20
#: Larger bodies, in bytes, are parsed outside the event loop.
LARGE_BODY: Final = 1 << 15


async def read_body(request: Request, receive: Receive, max_size: int = MAX_BODY) -> bytes:
    """The whole request body. max_size: in bytes. Raises: ClientDisconnect, BodyTooLarge, BadRequest."""
    check_unencoded(request)
    if _content_length(request) > max_size:
        raise BodyTooLarge(max_size=max_size)
    chunks: list[bytes] = []
    size = 0
    has_more = True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, has_more = message.get("body", b""), message.get("more_body", False)
        chunks.append(chunk)
        size += len(chunk)
        if size > max_size:
            raise BodyTooLarge(max_size=max_size)
    return b"".join(chunks)


def check_unencoded(request: Request) -> None:
    """Checks that a body has no content coding, and no transfer coding besides chunks. Raises: BadRequest."""
    transfer = request.header(b"transfer-encoding")
    if transfer and transfer.strip().lower() != "chunked":
        raise BadRequest(error_detail=f'the body has the transfer coding "{transfer}"; send it without one')
    coding = request.header(b"content-encoding")
    if coding and coding.strip().lower() != "identity":
        # Stored as received, such bytes would become a document that no reader knows how to decode.
        raise BadRequest(error_detail=f'the body has the content coding "{coding}"; send it without one')


def limit_rows(rows: Iterable[T], max_rows: int) -> Iterator[T]:
    """The same rows, all read at once.

    Raises: ResponseTooLarge, before any part of the response is sent (FLAG-35).
    """
    read_rows = list(islice(rows, max_rows + 1))
    if len(read_rows) > max_rows:
        raise TooLarge()
    return iter(read_rows)


def check_path(request: Request) -> None:
    """Checks the path. Raises: BadRequest if it is not percent-encoded UTF-8."""
    if request.raw_path.isascii() and "%" not in request.raw_path:
        return
    try:
        unquote_to_bytes(request.raw_path).decode()
    except UnicodeDecodeError:
        raise BadRequest(error_detail="the path is not percent-encoded UTF-8") from None


def _content_length(request: Request) -> int:
    length = request.header(b"content-length")
    if length is None:
        return 0
    if not (length.isascii() and length.isdecimal()):
        raise BadRequest(error_detail="the Content-Length is not a number")
    return int(length)

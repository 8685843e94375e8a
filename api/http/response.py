"""HTTP responses, and how they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final, Protocol

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

Headers = list[tuple[bytes, bytes]]
NO_HEADERS: Final[Headers] = []

#: Statuses whose responses have no body and no length.
BODYLESS_STATUSES: Final = (204, 304)
#: The header of answers to writes that has the correlation id.
CORRELATION_HEADER: Final = b"xregistry-xregcorrelationid"
#: The header with the log position of the state that an answer shows, or that a write has made.
POSITION_HEADER: Final = b"annals-position"
#: Has nginx, and proxies that follow it, pass on each part of a stream at once.
UNBUFFERED: Final = (b"x-accel-buffering", b"no")
JSON: Final = (b"content-type", b"application/json; charset=utf-8")


class Compressor(Protocol):
    """Compresses one streamed body."""

    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Response:
    """A response: headers by lower-case name, and a body that is complete or streamed.

    compressor: compresses a streamed body while it is sent. first_chunks: parts of the body before `body`, already in
    memory. is_document: the body is a document and is sent byte for byte. check_rights: called before each part of
    `body`; raises if the reader may have no more of it.
    """

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None] = b""
    compressor: Compressor | None = None
    first_chunks: tuple[bytes, ...] = ()
    is_document: bool = False
    check_rights: Callable[[], Awaitable[None]] | None = None


async def buffer_short_body(response: Response) -> Response:
    """The same response; a streamed body of one piece becomes a complete body, with a length and without a stream.

    A response with `first_chunks` is unchanged, because its next piece may take long.

    Raises: what making the first two pieces raises.
    """
    if isinstance(response.body, bytes) or response.first_chunks:
        return response
    first_chunk = await anext(response.body, b"")
    second_chunk = await anext(response.body, None)
    if response.check_rights is not None:
        await response.check_rights()
    if second_chunk is None:
        return Response(response.status, response.headers, first_chunk)
    return replace(response, first_chunks=(first_chunk, second_chunk))


async def send_response(
    response: Response, scope: Scope, receive: Receive, send: Send, extra_headers: Headers = NO_HEADERS
) -> None:
    """Sends a response; for a HEAD request without the body. It stops if the client disconnects."""
    is_head = scope["method"] == "HEAD"
    if isinstance(response.body, bytes):
        await _send_whole(response, response.body, send, is_head, extra_headers)
        return
    async with aclosing(response.body) as rest:
        streamed = StreamingResponse(_chunks(response, rest, is_head), response.status)
        streamed.raw_headers = response.headers + extra_headers  # its own mapping cannot have two `Link`
        await streamed(scope, receive, send)


async def _send_whole(response: Response, body: bytes, send: Send, is_head: bool, extra_headers: Headers) -> None:
    """Sends a complete body: a fast path; see `api/server/dispatch.py`.

    Joining its chunks would copy a large list twice.
    """
    length_headers = (
        []
        if response.status in BODYLESS_STATUSES
        else [(b"content-length", b"%d" % (sum(map(len, response.first_chunks)) + len(body)))]
    )
    headers = response.headers + length_headers + extra_headers
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    for chunk in () if is_head else response.first_chunks:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"" if is_head else body, "more_body": False})


async def _chunks(response: Response, rest: AsyncGenerator[bytes, None], is_head: bool) -> AsyncGenerator[bytes, None]:
    """The chunks of a streamed body, compressed if needed. The compressor may produce no output yet."""
    if is_head:
        return
    compressor = response.compressor
    for chunk in response.first_chunks:
        yield chunk if compressor is None else await asyncio.to_thread(compressor.compress, chunk)
    async for chunk in rest:
        if response.check_rights is not None:
            await response.check_rights()
        yield chunk if compressor is None else await asyncio.to_thread(compressor.compress, chunk)
    if compressor is not None:
        yield compressor.flush()

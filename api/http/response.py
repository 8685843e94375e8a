"""HTTP responses, and how they are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from starlette.types import Receive, Send

Headers = list[tuple[bytes, bytes]]
NO_HEADERS: Final[Headers] = []

#: Statuses whose responses have no body and no length.
BODYLESS_STATUSES: Final = (204, 304)
JSON: Final = (b"content-type", b"application/json; charset=utf-8")


class Compressor(Protocol):
    """Compresses one streamed body."""

    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Response:
    """A response: headers by lower-case name, and a body that is complete or streamed.

    compressor: compresses a streamed body while it is sent. first_chunks: parts of the body before `body`, already in
    memory. is_document: the body is a document and is sent byte for byte.
    """

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None] = b""
    compressor: Compressor | None = None
    first_chunks: tuple[bytes, ...] = ()
    is_document: bool = False


async def buffer_short_body(answer: Response) -> Response:
    """The same response; a streamed body of one piece becomes a complete body, with a length and without a stream.

    A response with parts in `ahead` is unchanged, because its next piece may take long.

    Raises: what making the first two pieces raises.
    """
    if isinstance(answer.body, bytes) or answer.first_chunks:
        return answer
    first = await anext(answer.body, b"")
    second = await anext(answer.body, None)
    if second is None:
        return Response(answer.status, answer.headers, first)
    return Response(answer.status, answer.headers, answer.body, first_chunks=(first, second))


async def send_response(
    answer: Response, receive: Receive, send: Send, head: bool = False, also: Headers = NO_HEADERS
) -> None:
    """Sends a response; for a HEAD request (`head`) without the body. It stops if the client disconnects.

    also: additional headers.
    """
    if isinstance(answer.body, bytes):
        await _send_whole(answer, answer.body, send, head, also)
        return
    async with aclosing(answer.body) as chunks:
        await send(_start(answer.status, answer.headers + also))
        if head or await _send_chunks(answer, chunks, receive, send):
            await send(_part(answer.compressor.flush() if answer.compressor and not head else b"", more=False))


async def _send_whole(answer: Response, body: bytes, send: Send, head: bool, also: Headers) -> None:
    length = (
        []
        if answer.status in BODYLESS_STATUSES
        else [(b"content-length", b"%d" % (sum(map(len, answer.first_chunks)) + len(body)))]
    )
    await send(_start(answer.status, answer.headers + length + also))
    for part in () if head else answer.first_chunks:
        await send(_part(part, more=True))
    await send(_part(b"" if head else body, more=False))


async def _send_chunks(answer: Response, chunks: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> bool:
    """Sends a streamed body. False if the client disconnected meanwhile."""
    client = _Client(receive)
    try:
        for chunk in answer.first_chunks:
            await _send_chunk(chunk, answer.compressor, send)
        async for chunk in chunks:
            if client.is_gone():
                return False
            await _send_chunk(chunk, answer.compressor, send)
        return True
    finally:
        client.close()


class _Client:
    """Detects that a client has disconnected, which sending alone does not report."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._receiving = asyncio.ensure_future(receive())

    def is_gone(self) -> bool:
        """Whether the client has disconnected. Other messages from it are ignored."""
        if not self._receiving.done():
            return False
        if self._receiving.result()["type"] == "http.disconnect":
            return True
        self._receiving = asyncio.ensure_future(self._receive())
        return False

    def close(self) -> None:
        """Stops listening to the client."""
        self._receiving.cancel()


async def _send_chunk(chunk: bytes, compressor: Compressor | None, send: Send) -> None:
    """Sends a chunk, compressed if needed. The compressor may produce no output yet."""
    part = chunk if compressor is None else await asyncio.to_thread(compressor.compress, chunk)
    if part:
        await send(_part(part, more=True))


def _start(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _part(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}

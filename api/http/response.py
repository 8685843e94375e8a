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


async def buffer_short_body(response: Response) -> Response:
    """The same response; a streamed body of one piece becomes a complete body, with a length and without a stream.

    A response with `first_chunks` is unchanged, because its next piece may take long.

    Raises: what making the first two pieces raises.
    """
    if isinstance(response.body, bytes) or response.first_chunks:
        return response
    first_chunk = await anext(response.body, b"")
    second_chunk = await anext(response.body, None)
    if second_chunk is None:
        return Response(response.status, response.headers, first_chunk)
    return Response(response.status, response.headers, response.body, first_chunks=(first_chunk, second_chunk))


async def send_response(
    response: Response, receive: Receive, send: Send, is_head: bool = False, extra_headers: Headers = NO_HEADERS
) -> None:
    """Sends a response; for a HEAD request (`is_head`) without the body. It stops if the client disconnects."""
    if isinstance(response.body, bytes):
        await _send_whole(response, response.body, send, is_head, extra_headers)
        return
    async with aclosing(response.body) as chunks:
        await send(_start_message(response.status, response.headers + extra_headers))
        if is_head or await _send_chunks(response, chunks, receive, send):
            await send(
                _body_message(
                    response.compressor.flush() if response.compressor and not is_head else b"", has_more=False
                )
            )


async def _send_whole(response: Response, body: bytes, send: Send, is_head: bool, extra_headers: Headers) -> None:
    length_headers = (
        []
        if response.status in BODYLESS_STATUSES
        else [(b"content-length", b"%d" % (sum(map(len, response.first_chunks)) + len(body)))]
    )
    await send(_start_message(response.status, response.headers + length_headers + extra_headers))
    for chunk in () if is_head else response.first_chunks:
        await send(_body_message(chunk, has_more=True))
    await send(_body_message(b"" if is_head else body, has_more=False))


async def _send_chunks(response: Response, chunks: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> bool:
    """Sends a streamed body. False if the client disconnected meanwhile."""
    client = _DisconnectWatcher(receive)
    try:
        for chunk in response.first_chunks:
            await _send_chunk(chunk, response.compressor, send)
        async for chunk in chunks:
            if client.is_gone():
                return False
            await _send_chunk(chunk, response.compressor, send)
        return True
    finally:
        client.close()


class _DisconnectWatcher:
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
    compressed = chunk if compressor is None else await asyncio.to_thread(compressor.compress, chunk)
    if compressed:
        await send(_body_message(compressed, has_more=True))


def _start_message(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _body_message(body: bytes, has_more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": has_more}

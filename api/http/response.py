"""What goes back to the client, and how it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from starlette.types import Receive, Send

Headers = list[tuple[bytes, bytes]]
NO_HEADERS: Final[Headers] = []

#: Statuses whose answers have no body, and so no length.
BODYLESS_STATUSES: Final = (204, 304)
JSON: Final = (b"content-type", b"application/json; charset=utf-8")


class Compressor(Protocol):
    """One body on its way."""

    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Response:
    """A response: headers by lower-case name, and a body that is either all here or still coming in.

    compressor: for a body that is coming in and is to be compressed as it is sent. ahead: what comes before `body`, in
    parts, and is here already.
    as_stored: the body is a document, which goes out byte for byte.
    """

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None] = b""
    compressor: Compressor | None = None
    ahead: tuple[bytes, ...] = ()
    as_stored: bool = False


async def buffer_short_body(answer: Response) -> Response:
    """The same answer, whole where its body comes in one piece: a short one then has a length and costs no stream.

    One that begins with what is here already is left alone, as what follows may be long in coming.

    Raises: what making the first two pieces raises.
    """
    if isinstance(answer.body, bytes) or answer.ahead:
        return answer
    first = await anext(answer.body, b"")
    second = await anext(answer.body, None)
    if second is None:
        return Response(answer.status, answer.headers, first)
    return Response(answer.status, answer.headers, answer.body, ahead=(first, second))


async def send_response(
    answer: Response, receive: Receive, send: Send, head: bool = False, also: Headers = NO_HEADERS
) -> None:
    """Sends an answer; to a HEAD request (`head`) all but the body. One whose client has gone is not finished.

    also: headers besides those of the answer.
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
        else [(b"content-length", b"%d" % (sum(map(len, answer.ahead)) + len(body)))]
    )
    await send(_start(answer.status, answer.headers + length + also))
    for part in () if head else answer.ahead:
        await send(_part(part, more=True))
    await send(_part(b"" if head else body, more=False))


async def _send_chunks(answer: Response, chunks: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> bool:
    """Sends a body as it comes in. False where the client went away meanwhile."""
    client = _Client(receive)
    try:
        for chunk in answer.ahead:
            await _send_chunk(chunk, answer.compressor, send)
        async for chunk in chunks:
            if client.gone():
                return False
            await _send_chunk(chunk, answer.compressor, send)
        return True
    finally:
        client.close()


class _Client:
    """Whether a client still listens: sending to one that has gone does not tell."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._heard = asyncio.ensure_future(receive())

    def gone(self) -> bool:
        """Whether it has gone. Anything else that it sent is passed over."""
        if not self._heard.done():
            return False
        if self._heard.result()["type"] == "http.disconnect":
            return True
        self._heard = asyncio.ensure_future(self._receive())
        return False

    def close(self) -> None:
        """Stops listening to it."""
        self._heard.cancel()


async def _send_chunk(chunk: bytes, compressor: Compressor | None, send: Send) -> None:
    """Sends what a chunk comes to, which may be nothing yet."""
    part = chunk if compressor is None else await asyncio.to_thread(compressor.compress, chunk)
    if part:
        await send(_part(part, more=True))


def _start(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _part(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}

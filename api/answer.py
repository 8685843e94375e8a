"""What goes back to the client, and how it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from starlette.types import Send

Headers = list[tuple[bytes, bytes]]

#: Statuses whose answers have no body, and so no length.
BODILESS: Final = (204, 304)
#: Chunks below this many bytes are compressed faster than a thread takes them over.
SMALL: Final = 1 << 14
JSON: Final = (b"content-type", b"application/json; charset=utf-8")


class Compressor(Protocol):
    """One body on its way."""

    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: headers by lower-case name, and a body that is either all here or still coming in.

    compressor: for a body that is coming in and is to be compressed as it is sent.
    """

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None] = b""
    compressor: Compressor | None = None


async def send_answer(answer: Answer, send: Send, head: bool = False) -> None:
    """Sends an answer; to a HEAD request (`head`) everything but the body."""
    if isinstance(answer.body, bytes):
        await _send_whole(answer, answer.body, send, head)
        return
    async with aclosing(answer.body) as chunks:
        await send(_start(answer.status, answer.headers))
        if not head:
            async for chunk in chunks:
                if part := await _compressed(chunk, answer.compressor):
                    await send(_part(part, more=True))
        await send(_part(answer.compressor.flush() if answer.compressor and not head else b"", more=False))


async def _send_whole(answer: Answer, body: bytes, send: Send, head: bool) -> None:
    length = [] if answer.status in BODILESS else [(b"content-length", b"%d" % len(body))]
    await send(_start(answer.status, answer.headers + length))
    await send(_part(b"" if head else body, more=False))


async def _compressed(chunk: bytes, compressor: Compressor | None) -> bytes:
    """The next bytes to send, perhaps none yet."""
    if compressor is None:
        return chunk
    return compressor.compress(chunk) if len(chunk) < SMALL else await asyncio.to_thread(compressor.compress, chunk)


def _start(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _part(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}

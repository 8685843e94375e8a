"""What goes back to the client, and how it is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Send

Headers = list[tuple[bytes, bytes]]

#: Statuses whose answers have no body, and so no length.
BODILESS: Final = (204, 304)
JSON: Final = (b"content-type", b"application/json; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: headers by lower-case name, and a body that is either all here or still coming in."""

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None] = b""


async def send_answer(answer: Answer, send: Send, head: bool = False) -> None:
    """Sends an answer; to a HEAD request (`head`) everything but the body."""
    if isinstance(answer.body, bytes):
        await _send_whole(answer, answer.body, send, head)
        return
    async with aclosing(answer.body) as chunks:
        await send(_start(answer.status, answer.headers))
        if not head:
            async for chunk in chunks:
                await send(_part(chunk, more=True))
        await send(_part(b"", more=False))


async def _send_whole(answer: Answer, body: bytes, send: Send, head: bool) -> None:
    length = [] if answer.status in BODILESS else [(b"content-length", b"%d" % len(body))]
    await send(_start(answer.status, answer.headers + length))
    await send(_part(b"" if head else body, more=False))


def _start(status: int, headers: Headers) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": headers}


def _part(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}

"""What goes back to the client, and how it is sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Send

Headers = list[tuple[bytes, bytes]]

JSON: Final = (b"content-type", b"application/json; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: headers by lower-case name, and a body that is either all here or still coming in."""

    status: int
    headers: Headers
    body: bytes | AsyncGenerator[bytes, None] = b""


async def send_answer(answer: Answer, send: Send, head: bool = False) -> None:
    """Sends an answer; to a HEAD request (`head`) everything but the body."""
    headers = answer.headers
    if isinstance(answer.body, bytes) and answer.status not in (204, 304):
        headers = [*headers, (b"content-length", b"%d" % len(answer.body))]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if isinstance(answer.body, bytes):
        await send(_part(b"" if head else answer.body, more=False))
        return
    if not head:
        async with aclosing(answer.body) as chunks:
            async for chunk in chunks:
                await send(_part(chunk, more=True))
    await send(_part(b"", more=False))


def _part(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}

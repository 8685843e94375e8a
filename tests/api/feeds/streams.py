"""Readers of server-sent events, which call the application directly: the test client reads no endless responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.support.registries.in_process import Api


class Sent(NamedTuple):
    """One event as a browser would see it. last: the id that it would resume with."""

    last: str
    event: str
    data: str


class Stream:
    """What a reader has received so far.

    left: is set when the reader disconnects. ended: is set when the response is complete.
    """

    def __init__(self) -> None:
        self.left, self.ended = asyncio.Event(), asyncio.Event()
        self.status = 0
        self.headers: dict[str, str] = {}
        self.text = ""
        self._grown = asyncio.Condition()

    async def receive(self) -> dict[str, Any]:
        """Waits until the reader disconnects; the request has no body."""
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Adds what the application sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        async with self._grown:
            self.text += message.get("body", b"").decode()
            self._grown.notify_all()

    async def until(self, count: int) -> list[Sent]:
        """The events, as soon as there are at least this many."""
        async with asyncio.timeout(60), self._grown:
            await self._grown.wait_for(lambda: len(parse_events(self.text)) >= count)
        return parse_events(self.text)


def parse_events(text: str) -> list[Sent]:
    """The events in a text, read as the specification of server-sent events says."""
    found, last = [], ""
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        last = fields.get("id", last)
        if "data" in fields:
            found.append(Sent(last, fields.get("event", "message"), fields["data"]))
    return found


@asynccontextmanager
async def reading(api: Api, path: str, **headers: str) -> AsyncIterator[Stream]:
    """A reader of a path, which disconnects at the end of the block."""
    stream = Stream()
    task = asyncio.create_task(api.app(scope(path, headers), stream.receive, stream.send))
    task.add_done_callback(lambda _: stream.ended.set())
    try:
        yield stream
    finally:
        stream.left.set()
        await asyncio.wait_for(task, 60)


def scope(path: str, headers: dict[str, str]) -> dict[str, Any]:
    """The scope of a GET that accepts server-sent events."""
    path, _, query = path.partition("?")
    given = {"host": "h", "accept": "text/event-stream", **headers}
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": quote(path).encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
        "scheme": "http",
        "server": ("h", 80),
    }

"""A receiver of webhooks that costs next to nothing, in a process of its own, and a bare client to compare with."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

import httpx
from cloudevents.core.v1.event import CloudEvent

from annals.projections.subscriptions.sinks.http.messages import encode_message

#: Requests of the bare client that are on their way at once: its fastest, as its pool slows down with more.
_WIDTH = 4


@contextmanager
def receiver() -> Iterator[str]:
    """The URL of one who says 204 to everything."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/"
    finally:
        process.kill()
        process.join()


def posted(url: str, events: Sequence[CloudEvent]) -> None:
    """Sends events with httpx."""

    async def run() -> None:
        waiting = iter(events)
        async with httpx.AsyncClient() as client:

            async def send() -> None:
                for event in waiting:
                    headers, body = encode_message([event], "structured")
                    answer = await client.post(url, content=body, headers=dict(headers))
                    assert answer.status_code == 204

            await asyncio.gather(*(send() for _ in range(_WIDTH)))

    asyncio.run(run())


class _Answering(asyncio.Protocol):
    """Answers each request with a `Content-Length`, in order."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._read = transport, b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        while (end := self._read.find(b"\r\n\r\n") + 4) > 3:
            length = self._read[:end].lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            end += int(length or 0)
            if len(self._read) < end:
                return
            self._read = self._read[end:]
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def _serve(ready: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Answering, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())

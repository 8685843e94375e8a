"""Receivers of webhooks with real sockets: an HTTP server, and listeners that handle raw connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Handles a connection of a listener.
Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request. headers: with their names in lower case, in order."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: tuple[str, int]

    def header(self, name: str) -> str | None:
        """The value of a header that occurs at most once."""
        found = [value for other, value in self.headers if other == name]
        assert len(found) < 2, found
        return found[0] if found else None


@dataclass
class Receiver:
    """An ASGI application that records requests. answers: its responses, in order; 204 when there are none left."""

    answers: list[Response] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    url: str = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])
        query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
        target = scope["raw_path"].decode() + query
        self.requests.append(
            ReceivedRequest(scope["method"], target, headers, await request.body(), tuple(scope["client"]))
        )
        answer = self.answers.pop(0) if self.answers else Response(status_code=204)
        await answer(scope, receive, send)


@contextmanager
def serve_receiver(receiver: Receiver, certificate: Path | None = None, key: Path | None = None) -> Iterator[Receiver]:
    """Serves a receiver, over TLS if there is a certificate."""
    options: dict[str, Any] = {} if certificate is None else {"ssl_certfile": certificate, "ssl_keyfile": key}
    config = uvicorn.Config(receiver, port=0, log_level="error", lifespan="off", **options)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    receiver.url = f"{'http' if certificate is None else 'https'}://127.0.0.1:{port}/"
    try:
        yield receiver
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def listener(handle: Handle, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Runs a listener; yields its port."""
    ready, ports, stops = Event(), list[int](), list[Callable[[], object]]()

    async def serve() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        ports.append(server.sockets[0].getsockname()[1])
        stops.append(lambda: loop.call_soon_threadsafe(over.set))
        ready.set()
        await over.wait()
        server.close()

    thread = Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    try:
        yield ports[0]
    finally:
        stops[0]()
        thread.join(10)


def respond_with(*parts: bytes, pause: float = 0.0, stay: bool = False) -> Handle:
    """Reads the head of a request, writes parts with a pause before each, and closes the connection unless `stay`."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                await asyncio.sleep(pause)
                writer.write(part)
                await writer.drain()
            if stay:
                await asyncio.sleep(60)
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    return handle

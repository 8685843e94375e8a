"""Answers a GET with the registry in this process, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Scope

from annals.api.app import create_app
from annals.api.cli.outcome import StoreError
from annals.api.settings.settings import Settings
from annals.domain.access.roles import CONSOLE

#: Maximum number of messages that wait for a slow reader.
_MAX_WAITING_MESSAGES: Final = 4


async def get_body(settings: Settings, path: str) -> AsyncGenerator[bytes, None]:
    """The body of a GET as a stream; memory use does not depend on its size. Callers have to close it.

    path: with the query, if any. Raises: StoreError if the status is not 200.
    """
    quiet = settings.model_copy(update={"access_log": "off"})  # a verb is not a server
    app = create_app(quiet, caller=CONSOLE)
    async with app.router.lifespan_context(app), _answering(app, _request_scope(settings, path)) as messages:
        status = 0
        while message := await messages.get():
            if message["type"] == "http.response.start":
                status = message["status"]
            elif status != 200:
                raise StoreError(f"GET {path} answers {status}: {message['body'].decode()}")
            else:
                yield message["body"]


class _MessageQueue:
    """The messages of one response. The application is at most a few ahead of the reader."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Message | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(_MAX_WAITING_MESSAGES)
        self._has_reader = True

    async def send(self, message: Message) -> None:
        """Adds a message, once there is room for it. Without a reader, it does nothing."""
        if self._has_reader:
            await self._room.acquire()
            self._queue.put_nowait(message)

    def end(self) -> None:
        """Adds the end. It does not wait, because a request that is cancelled must not wait for its reader."""
        self._queue.put_nowait(None)

    async def get(self) -> Message | None:
        """The next message; None at the end."""
        message = await self._queue.get()
        self._room.release()
        return message

    def close(self) -> None:
        """From now on, nobody reads."""
        self._has_reader = False


@asynccontextmanager
async def _answering(app: ASGIApp, scope: Scope) -> AsyncIterator[_MessageQueue]:
    """The messages of a response. At the end of the block, the request has ended, too. Raises: what the app raises."""
    messages = _MessageQueue()
    request_task = asyncio.ensure_future(app(scope, _receive, messages.send))
    request_task.add_done_callback(lambda _: messages.end())
    try:
        yield messages
        await request_task
    finally:
        messages.close()
        request_task.cancel()
        await asyncio.gather(request_task, return_exceptions=True)


async def _receive() -> Message:
    disconnected: asyncio.Future[Message] = asyncio.get_running_loop().create_future()  # never; a GET has no body
    return await disconnected


def _request_scope(settings: Settings, target: str) -> Scope:
    """The scope that a server on the configured address would pass on."""
    path, _, query = target.partition("?")
    root = urlsplit(settings.public_url or f"http://{settings.host}:{settings.port}")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": root.scheme,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", root.netloc.encode())],
        "server": (settings.host, settings.port),
    }

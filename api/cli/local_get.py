"""Answers a GET with the registry in this process, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Scope

from annals.api.app import create_app
from annals.api.cli.outcome import StoreError
from annals.api.settings.settings import Settings
from annals.domain.access.roles import CONSOLE


async def get_body(settings: Settings, path: str) -> AsyncIterator[bytes]:
    """The body of a GET as a stream; memory use does not depend on its size.

    path: with the query, if any. Raises: StoreError if the status is not 200.
    """
    quiet = settings.model_copy(update={"access_log": "off"})  # a verb is not a server
    app = create_app(quiet, caller=CONSOLE)
    async with app.router.lifespan_context(app):
        messages: asyncio.Queue[Message | None] = asyncio.Queue(maxsize=4)
        request_task = asyncio.create_task(_run_app(app, _request_scope(settings, path), messages))
        try:
            response_start = await messages.get() or {"status": 500}
            while message := await messages.get():
                if response_start["status"] != 200:
                    raise StoreError(f"GET {path} answers {response_start['status']}: {message['body'].decode()}")
                yield message["body"]
            await request_task
        finally:
            request_task.cancel()


async def _run_app(app: ASGIApp, scope: Scope, messages: asyncio.Queue[Message | None]) -> None:
    async def receive() -> Message:
        disconnected: asyncio.Future[Message] = asyncio.get_running_loop().create_future()  # never; a GET has no body
        return await disconnected

    try:
        await app(scope, receive, messages.put)
    finally:
        # Once for a response that never began, once for its end.
        await messages.put(None)
        await messages.put(None)


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

"""Confluent's API of the registry in this process, without a socket, as copies call it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any, Final
from urllib.parse import unquote

from starlette.types import Message, Receive

from annals.api.auth.callers import FixedCallerAuthenticator
from annals.api.cli.open_registry import open_local_registry
from annals.api.compat.confluent.paths import BASE
from annals.api.compat.confluent.routes import ConfluentRoutes, ConfluentSettings
from annals.api.http.request import Request
from annals.api.settings.settings import Settings
from annals.domain.access.roles import CONSOLE
from annals.projections.confluent_copy.rest_api import RestAnswer

_HEADERS: Final = [(b"confluent-accept-unknown-properties", b"true")]


class LocalApi:
    """A `RestApi` over a surface. Its event loop runs in a thread, so that several threads can send requests."""

    def __init__(self, routes: ConfluentRoutes, loop: asyncio.AbstractEventLoop) -> None:
        self._routes = routes
        self._loop = loop

    def send(self, method: str, path: str, body: Any = None) -> RestAnswer:
        """See `RestApi`. It always answers."""
        content = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        raw_path = BASE + path
        decoded = unquote(raw_path)
        request = Request(method, decoded, (), False, query.encode(), [*_HEADERS], "", raw_path, CONSOLE)

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        answer = self._answer(request, receive)
        status, answered = asyncio.run_coroutine_threadsafe(answer, self._loop).result()
        return RestAnswer(status, json.loads(answered) if answered else None)

    async def _answer(self, request: Request, receive: Receive) -> tuple[int, bytes]:
        """The status and the whole body; lists are sent while they are read."""
        response = await self._routes.answer(request, receive)
        if isinstance(response.body, bytes):
            return response.status, response.body
        return response.status, b"".join([*response.first_chunks, *[chunk async for chunk in response.body]])


@contextmanager
def open_local_api(settings: Settings) -> Iterator[LocalApi]:
    """The API over a store, as an administrator. Raises: StoreError."""
    confluent_settings = ConfluentSettings(
        settings.confluent_group, settings.confluent_compatibility, sys.maxsize, sys.maxsize
    )
    with open_local_registry(settings) as registry, _running_loop() as loop:
        yield LocalApi(ConfluentRoutes(registry, FixedCallerAuthenticator(CONSOLE), confluent_settings), loop)


@contextmanager
def _running_loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="annals-local-api", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

"""Calls a surface of the API in this process, as an administrator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from starlette.types import Message

from annals.api.dispatch import Surface
from annals.api.http.id_pages import MAX_LIMIT
from annals.api.http.request import Request
from annals.domain.access.roles import CONSOLE, Caller
from annals.domain.values.json_text import dumps


class SurfaceClient:
    """A client of one surface, without HTTP."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def members(self, path: str) -> Iterator[Any]:
        """The members of a list with pages by id, of all pages. Raises: Problem."""
        page = self.request("GET", path)
        yield from page
        while len(page) == MAX_LIMIT:
            page = self.request("GET", f"{path}?after={page[-1]['id']}")
            yield from page

    def request(self, method: str, path: str, body: Any = None, caller: Caller = CONSOLE) -> Any:
        """The JSON of the response; None for no body. Raises: Problem."""
        content = b"" if body is None else body if isinstance(body, bytes) else dumps(body)
        path, _, query = path.partition("?")
        segments = tuple(path.strip("/").split("/"))
        request = Request(method, path, segments, False, query.encode(), [], "", path, caller)

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        response = asyncio.run(self._surface.answer(request, receive))
        assert isinstance(response.body, bytes), "these answers come in one piece"
        return json.loads(response.body) if response.body else None

"""Calls a surface of the API in this process, as an administrator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.types import Message

from annals.api.http.id_pages import MAX_LIMIT
from annals.api.http.methods import MethodNotAllowed
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.server.dispatch import Surface
from annals.domain.access.roles import CONSOLE, Caller
from annals.domain.values.json_text import dumps


class SurfaceClient:
    """A client of one surface, without HTTP."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def members(self, collection: str) -> Iterator[Any]:
        """The members of a list with pages by id, of all pages. Raises: Problem."""
        page = self.request("GET", collection)
        yield from page
        while len(page) == MAX_LIMIT:
            page = self.request("GET", collection, query={"after": page[-1]["id"]})
            yield from page

    def request(
        self,
        method: str,
        collection: str,
        *segments: str,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        caller: Caller = CONSOLE,
    ) -> Any:
        """The JSON of the response; None for no body.

        segments: those of the path below the collection, each as it is, so that no id can name another path.
        Raises: Problem.
        """
        content = b"" if body is None else body if isinstance(body, bytes) else dumps(body)

        async def receive() -> Message:
            return {"type": "http.request", "body": content, "more_body": False}

        request = _build_request(method, collection, segments, urlencode(query or {}), caller)
        try:
            response: Response = asyncio.run(self._surface.answer(request, receive))
        except MethodNotAllowed as not_allowed:
            raise not_allowed.problem from None
        assert isinstance(response.body, bytes), "these answers come in one piece"
        return json.loads(response.body) if response.body else None


def _build_request(method: str, collection: str, segments: tuple[str, ...], query: str, caller: Caller) -> Request:
    path = "/".join((collection, *segments))
    raw_path = "/".join((collection, *(quote(segment, safe="") for segment in segments)))
    all_segments = (*collection.strip("/").split("/"), *segments)
    return Request(method, path, all_segments, False, query.encode(), [], "", raw_path, caller)

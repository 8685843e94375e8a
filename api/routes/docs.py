"""The API described: `/-/openapi.json` for programs, `/-/docs` for people."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive, Scope, Send

from api.answer import JSON, Answer, send_answer
from api.definitions import Definitions, Latest
from api.observe import failed
from api.openapi.document import document
from api.openapi.page import POLICY, page
from api.problem import problem_answer, root_link
from api.request import Request, request_of
from api.wiring import Registry
from domain import problems
from domain.jsontext import dumps

OPENAPI: Final = "openapi.json"
DOCS: Final = "docs"

_METHODS: Final = "GET, HEAD, OPTIONS"
_HTML: Final = (b"content-type", b"text/html; charset=utf-8")
_SECURITY: Final = ((b"content-security-policy", POLICY.encode()), (b"x-content-type-options", b"nosniff"))


class Described:
    """The ASGI application for both. What was made last is kept until the model or the capabilities change."""

    def __init__(self, registry: Registry, public_url: str | None = None) -> None:
        self._readers = registry.readers
        self._public_url = public_url
        self._latest = Latest(registry.readers.quick())
        self._kept: dict[tuple[tuple[int, int], str, str], bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = request_of(scope, self._public_url)
        await send_answer(await self._guarded(request), send, head=request.method == "HEAD")

    async def _guarded(self, request: Request) -> Answer:
        if request.method == "OPTIONS":
            return Answer(200, [root_link(request.base), (b"allow", _METHODS.encode())])
        if request.method not in ("GET", "HEAD"):
            return problem_answer(problems.ActionNotSupported(action=request.method), request, _METHODS)
        try:
            return await self._answer(request)
        except Exception as error:
            failed(request, error)
            return problem_answer(problems.ServerError(), request)

    async def _answer(self, request: Request) -> Answer:
        name = request.segments[-1]
        body = await asyncio.to_thread(self._body, name, request.base)
        headers = [_HTML, *_SECURITY] if name == DOCS else [JSON]
        return Answer(200, [*headers, root_link(request.base)], body)

    def _body(self, name: str, base: str) -> bytes:
        definitions = self._latest.current(self._readers.quick())
        key = (definitions.positions, base, name)
        kept = self._kept.get(key)
        if kept is None:
            kept = _made(name, definitions, base)
            # Clients choose the base where it follows the Host header, so only the newest is kept of each name.
            self._kept = {other: text for other, text in self._kept.items() if other[2] != name} | {key: kept}
        return kept


def _made(name: str, definitions: Definitions, base: str) -> bytes:
    described = document(definitions.model, definitions.capabilities, base)
    return page(described).encode() if name == DOCS else dumps(described)

"""Is the process alive, and is what it serves current?"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive, Scope, Send

from api.answer import JSON, Answer, send_answer
from api.problem import problem_answer, root_link
from api.request import Request, request_of
from api.rules import NotAllowed
from api.wiring import Registry
from domain import problems
from domain.jsontext import Json, dumps

LIVEZ: Final = "livez"
READYZ: Final = "readyz"
#: Names at the root that mean the same, as long as the model has no such name.
ALIASES: Final = frozenset((LIVEZ, READYZ))

_ALIVE: Final = dumps({"status": "ok"})


class Health:
    """The ASGI application for `/-/livez` and `/-/readyz`."""

    def __init__(self, registry: Registry, public_url: str | None = None) -> None:
        self._registry = registry
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = request_of(scope, self._public_url)
        try:
            answer = await self.answer(request.segments[-1], request)
        except NotAllowed as refused:
            answer = problem_answer(refused.problem, request, refused.allow)
        await send_answer(answer, send, head=request.method == "HEAD")

    async def answer(self, name: str, request: Request) -> Answer:
        """The answer of one check: 200 or 503. Raises: NotAllowed."""
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            raise NotAllowed(problems.ActionNotSupported(action=request.method), "GET, HEAD, OPTIONS")
        headers = [JSON, root_link(request.base)]
        if request.method == "OPTIONS":
            return Answer(200, [*headers[1:], (b"allow", b"GET, HEAD, OPTIONS")])
        if name == LIVEZ:
            return Answer(200, headers, _ALIVE)
        status, report = await asyncio.to_thread(self._readiness)
        return Answer(status, headers, dumps(report))

    def _readiness(self) -> tuple[int, dict[str, Json]]:
        """Status and body: ready where the store answers and the read model holds all that the log does."""
        try:
            head = self._registry.store.tip().position
            with self._registry.readers.view() as view:
                applied = view.position()
        except Exception as error:
            return 503, {"status": "unavailable", "reason": f"the store cannot be reached ({type(error).__name__})"}
        if applied < head:
            reason = "the read model is behind the log"
            return 503, {"status": "unavailable", "reason": reason, "position": applied, "head": head}
        return 200, {"status": "ok", "position": applied, "head": head}

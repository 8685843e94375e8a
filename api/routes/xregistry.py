"""The xRegistry paths: every request that is not for a path of our own comes here, as raw ASGI.

Spec: HTTP binding 1.0-rc4, "Registry HTTP APIs".
"""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from api.answer import Answer, send_answer
from api.definitions import Latest
from api.observe import answered, failed, started
from api.paths import allowed, locate
from api.problem import OWN, problem_answer, root_link
from api.reading import Reading
from api.request import Disconnected, Request, body_of, request_of
from api.routes.health import ALIASES, Health
from api.rules import NotAllowed
from api.streaming import Streams
from api.wiring import Registry
from api.writing import Writing
from domain import problems
from domain.problems import Problem


class XRegistry:
    """The ASGI application for the xRegistry paths. public_url: root of the registry, None to follow the request."""

    def __init__(self, registry: Registry, health: Health, public_url: str | None = None) -> None:
        self._public_url = public_url
        self._readers = registry.readers
        self._health = health
        self._streams = Streams()
        self._latest = Latest(registry.readers.quick())
        self._reading = Reading(registry.readers, self._latest, self._streams)
        self._writing = Writing(registry.road, registry.readers, self._latest)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        since = started()
        request = request_of(scope, self._public_url)
        try:
            answer = await self._guarded(request, receive)
        except Disconnected:
            return
        try:
            await send_answer(answer, send, head=request.method == "HEAD")
        except Exception as error:
            # The status is out already; a connection cut short is the only way left to say that this is no answer.
            failed(request, error)
            raise
        answered(request, answer.status, since)

    def close(self) -> None:
        """Waits for the answers that are being made."""
        self._streams.close()

    async def _guarded(self, request: Request, receive: Receive) -> Answer:
        """The answer, whatever happens. Raises: Disconnected."""
        try:
            return await self._answer(request, receive)
        except NotAllowed as refused:
            return problem_answer(refused.problem, request, refused.allow)
        except Problem as problem:
            return problem_answer(problem, request, self._allow(request) if problem.status == 405 else None)
        except Disconnected:
            raise
        except Exception as error:
            failed(request, error)
            return problem_answer(problems.ServerError(), request)

    async def _answer(self, request: Request, receive: Receive) -> Answer:
        if request.segments[:1] == (OWN,):
            raise problems.ApiNotFound()
        if len(request.segments) == 1 and request.segments[0] in ALIASES and self._is_free(request.segments[0]):
            return await self._health.answer(request.segments[0], request)
        if request.method in ("GET", "HEAD"):
            return await self._reading.answer(request)
        if request.method == "OPTIONS":
            return self._options(request)
        return await self._writing.answer(request, await body_of(receive))

    def _allow(self, request: Request) -> str:
        definitions = self._latest.current(self._readers.quick())
        target = locate(request.segments, definitions.model, request.details)
        return allowed(target.kind, definitions.capabilities)

    def _options(self, request: Request) -> Answer:
        methods = self._allow(request).encode()
        headers = [root_link(request.base), (b"allow", methods), (b"access-control-allow-methods", methods)]
        return Answer(200, headers)

    def _is_free(self, name: str) -> bool:
        """Whether neither a Group type nor an attribute of the registry has taken a name."""
        model = self._latest.current(self._readers.quick()).model
        return name not in model.groups and name not in model.registry.definitions

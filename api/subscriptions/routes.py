"""`/subscriptions`: subscriptions to events.

Spec: CloudEvents Subscriptions API, "API Specification".
Rules SUB-501 to SUB-510.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.types import Receive

from api.http.methods import MethodNotAllowed
from api.http.request import Request
from api.http.response import Response
from api.subscriptions.actions import SubscriptionActionHandler
from api.subscriptions.config import options_document
from api.subscriptions.context import SubscriptionApiContext, check_caller, find_subscription
from api.subscriptions.dead_letters import DeadLetterHandler
from api.subscriptions.reading import SubscriptionReadHandler
from api.subscriptions.responses import json_response
from api.subscriptions.writing import SubscriptionWriteHandler
from domain.errors import problems
from domain.errors.problems import Problem

Handler = Callable[[Request, Receive], Awaitable[Response]]

_METHODS: Final = b"access-control-allow-methods"


class SubscriptionsRoutes:
    """The surface of all paths that begin with `/subscriptions`."""

    def __init__(self, parts: SubscriptionApiContext) -> None:
        self._parts = parts
        reading, writing = SubscriptionReadHandler(parts), SubscriptionWriteHandler(parts)
        actions, letters = SubscriptionActionHandler(parts), DeadLetterHandler(parts)
        collection: Mapping[str, Handler] = {"GET": reading.list, "POST": writing.create}
        item: Mapping[str, Handler] = {"GET": reading.read_one, "PUT": writing.replace, "DELETE": writing.delete}
        action: Mapping[str, Handler] = {"POST": actions.answer}
        #: Handlers by kind of path. The handlers themselves look up the action or the dead letter.
        self._handlers: Mapping[str, Mapping[str, Handler]] = {
            "": collection,
            "id": item,
            "actions": action,
            "deadletters": {"GET": letters.list},
            "deadletter": {"GET": letters.read_one, "DELETE": letters.discard},
            "redeliver": {"POST": letters.redeliver},
        }

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: any Problem, with a `code` (SUB-508)."""
        return await with_problem_codes(self._answer(request, receive))

    async def _answer(self, request: Request, receive: Receive) -> Response:
        check_caller(request.caller)
        handlers = self._handlers.get(_kind(request.segments) if not request.details else "none")
        if handlers is None:
            raise problems.ApiNotFound()
        allow = ", ".join((*handlers, "OPTIONS"))
        if request.method == "OPTIONS":
            return await self._options(request, allow)
        handler = handlers.get("GET" if request.method == "HEAD" else request.method)
        if handler is None:
            raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), allow)
        return await handler(request, receive)

    async def _options(self, request: Request, allow: str) -> Response:
        """What a client can subscribe to, and how (SUB-506). Raises: NotFound."""
        if len(request.segments) > 1:
            await asyncio.to_thread(self._find, request)
        described = await asyncio.to_thread(lambda: options_document(self._parts.supported()))
        return json_response(request, 200, described, [(b"allow", allow.encode()), (_METHODS, allow.encode())])

    def _find(self, request: Request) -> None:
        find_subscription(self._parts.registry.readers.quick_view(), request.segments[1], request.caller)


async def with_problem_codes(work: Awaitable[Response]) -> Response:
    """The response that work makes. Problems get the member `code`, by which programs identify them (SUB-508)."""
    try:
        return await work
    except MethodNotAllowed as refused:
        _add_code(refused.problem)
        raise
    except Problem as problem:
        raise _add_code(problem) from None


def _add_code(problem: Problem) -> Problem:
    problem.extensions.setdefault("code", problem.name.replace("_", ""))
    return problem


def _kind(segments: tuple[str, ...]) -> str:
    """The kind of a path, a key of the handlers; "none" for an unknown path."""
    if not all(segments):
        return "none"
    match segments[1:]:
        case ():
            return ""
        case (_,):
            return "id"
        case (_, "actions", _):
            return "actions"
        case (_, "deadletters"):
            return "deadletters"
        case (_, "deadletters", _):
            return "deadletter"
        case (_, "deadletters", _, "redeliver"):
            return "redeliver"
    return "none"

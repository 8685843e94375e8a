"""`/subscriptions`: subscriptions to events.

Spec: CloudEvents Subscriptions API, "API Specification".
Rules SUB-501 to SUB-510.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Final

from starlette.types import Receive

from annals.api.http.methods import Handler, MethodNotAllowed, handler_of
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.subscriptions.actions import SubscriptionActionHandler
from annals.api.subscriptions.attempts import AttemptsHandler
from annals.api.subscriptions.config import options_document
from annals.api.subscriptions.context import SubscriptionApiContext, check_caller, find_subscription
from annals.api.subscriptions.dead_letters import DeadLetterHandler
from annals.api.subscriptions.reading import SubscriptionReadHandler
from annals.api.subscriptions.responses import json_response
from annals.api.subscriptions.writing import SubscriptionWriteHandler
from annals.domain.errors import problems
from annals.domain.errors.problems import Problem

_ALLOW_METHODS_HEADER: Final = b"access-control-allow-methods"


class SubscriptionsRoutes:
    """The surface of all paths that begin with `/subscriptions`."""

    def __init__(self, context: SubscriptionApiContext) -> None:
        self._context = context
        read_handler, write_handler = SubscriptionReadHandler(context), SubscriptionWriteHandler(context)
        action_handler, dead_letters = SubscriptionActionHandler(context), DeadLetterHandler(context)
        collection: Mapping[str, Handler] = {"GET": read_handler.list, "POST": write_handler.create}
        item: Mapping[str, Handler] = {
            "GET": read_handler.read_one,
            "PUT": write_handler.replace,
            "DELETE": write_handler.delete,
        }
        action: Mapping[str, Handler] = {"POST": action_handler.answer}
        #: Handlers by kind of path. The handlers themselves look up the action or the dead letter.
        self._handlers: Mapping[str, Mapping[str, Handler]] = {
            "": collection,
            "id": item,
            "actions": action,
            "attempts": {"GET": AttemptsHandler(context).list},
            "deadletters": {"GET": dead_letters.list},
            "deadletter": {"GET": dead_letters.read_one, "DELETE": dead_letters.discard},
            "redeliver": {"POST": dead_letters.redeliver},
        }

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: any Problem, with a `code` (SUB-508)."""
        return await with_problem_codes(self._answer(request, receive))

    async def _answer(self, request: Request, receive: Receive) -> Response:
        check_caller(request.caller)
        handlers = self._handlers.get(_path_kind(request.segments) if not request.details else "none")
        if handlers is None:
            raise problems.ApiNotFound()
        allow = ", ".join((*handlers, "OPTIONS"))
        if request.method == "OPTIONS":
            return await self._options(request, allow)
        return await handler_of(request, handlers, allow)(request, receive)

    async def _options(self, request: Request, allow: str) -> Response:
        """What a client can subscribe to, and how (SUB-506). Raises: NotFound."""
        if len(request.segments) > 1:
            await asyncio.to_thread(self._check_exists, request)
        options = await asyncio.to_thread(lambda: options_document(self._context.read_support()))
        return json_response(
            request, 200, options, [(b"allow", allow.encode()), (_ALLOW_METHODS_HEADER, allow.encode())]
        )

    def _check_exists(self, request: Request) -> None:
        find_subscription(self._context.registry.readers.quick_view(), request.segments[1], request.caller)


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


def _path_kind(segments: tuple[str, ...]) -> str:
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
        case (_, "attempts"):
            return "attempts"
        case (_, "deadletters"):
            return "deadletters"
        case (_, "deadletters", _):
            return "deadletter"
        case (_, "deadletters", _, "redeliver"):
            return "redeliver"
    return "none"

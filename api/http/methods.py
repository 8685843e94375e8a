"""Checks of methods and of the caller's role, before anything is read or written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final

from starlette.types import Receive

from annals.api.http.problem_response import root_link
from annals.api.http.request import READ_METHODS, Request
from annals.api.http.response import Response
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden
from annals.domain.errors.problems import Problem
from annals.domain.values import xid as xids

Handler = Callable[[Request, Receive], Awaitable[Response]]

_READ_METHODS_HEADER: Final = "GET, HEAD, OPTIONS"


POST_METHODS: Final = "OPTIONS, POST"


class MethodNotAllowed(Exception):
    """A problem whose response has the Allow header."""

    def __init__(self, problem: Problem, allow: str) -> None:
        super().__init__(problem.text())
        self.problem = problem
        self.allow = allow


async def answer_by_method(
    request: Request,
    receive: Receive,
    handlers: Mapping[str, Handler] | None,
    subpath: Sequence[str],
    check: Callable[[Caller], None],
) -> Response:
    """The answer of the handler for the method. handlers: None for no such path. check: of who may call.

    Raises: ApiNotFound, also for an empty segment; MethodNotAllowed; what the check and the handler raise.
    """
    if handlers is None or not all(subpath):
        raise problems.ApiNotFound()
    methods = (each for method in handlers for each in ((method, "HEAD") if method == "GET" else (method,)))
    allow = ", ".join((*methods, "OPTIONS"))
    if request.method == "OPTIONS":
        return Response(204, [(b"allow", allow.encode()), root_link(request.base)])
    check(request.caller)
    return await handler_of(request, handlers, allow)(request, receive)


def handler_of(request: Request, handlers: Mapping[str, Handler], allow: str) -> Handler:
    """The handler for the method; that of GET also for HEAD. allow: for the Allow header. Raises: MethodNotAllowed."""
    handler = handlers.get("GET" if request.method == "HEAD" else request.method)
    if handler is None:
        raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), allow)
    return handler


def check_caller(request: Request) -> None:
    """Checks the caller's role for a request.

    Raises: Forbidden if the caller may do this nowhere; NotFound in a Group that the caller may not read. Above the
    Groups, a reader of some of them passes and sees these; so does a writer, because the command checks what the body
    names.
    """
    caller = request.caller
    if request.is_read and caller.sees_everything:
        return
    if not (caller.sees_something if request.is_read else caller.writes_somewhere):
        raise Forbidden(caller=caller.name)
    if request.is_read and len(request.segments) > 1 and not caller.can_read(xid := xids.join(*request.segments)):
        raise problems.NotFound(xid)


def read_only_options(request: Request) -> Response | None:
    """The response to OPTIONS on a read-only path; None for a read. Raises: MethodNotAllowed."""
    return options_response(request, READ_METHODS, _READ_METHODS_HEADER)


def post_only_options(request: Request) -> Response | None:
    """The response to OPTIONS on a path that accepts only POST; None for a POST. Raises: MethodNotAllowed."""
    return options_response(request, ("POST",), POST_METHODS)


def options_response(request: Request, methods: Collection[str], allow: str) -> Response | None:
    """The response to OPTIONS on a path; None for one of its methods. allow: these as a header's value.

    Raises: MethodNotAllowed.
    """
    if request.method == "OPTIONS":
        allow_headers = ((name, allow.encode()) for name in (b"allow", b"access-control-allow-methods"))
        return Response(200, [root_link(request.base), *allow_headers])
    if request.method not in methods:
        raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), allow)
    return None

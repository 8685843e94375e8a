"""The paths below `/ui/`."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from annals.api.auth.callers import Authenticator
from annals.api.auth.oidc.provider import OidcProvider
from annals.api.auth.sessions.sessions import Sessions
from annals.api.http.methods import options_response, read_only_options
from annals.api.http.problem_response import problem_body, retry_headers
from annals.api.http.query_params import all_query_params
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.http.session_cookie import session_cookie
from annals.api.ui.local_paths import HOME, below_root, local_path, login_path
from annals.api.ui.login import LoginRoutes
from annals.api.ui.pages import Pages, redirect
from annals.api.ui.static_files import STATIC, static_response
from annals.domain.errors.http_errors import Unauthorized
from annals.domain.errors.problems import ApiNotFound, Problem

UI: Final = "ui"
#: The templates of the paths, for log lines.
UI_PATHS: Final = ("/ui", "/ui/login", "/ui/login/provider", "/ui/login/callback", "/ui/logout", "/ui/static/{name}")
_LOGIN: Final = ("login",)
_PROVIDER: Final = ("login", "provider")
_CALLBACK: Final = ("login", "callback")
_LOGOUT: Final = ("logout",)
_METHODS: Final = {
    _LOGIN: ("GET", "HEAD", "POST"),
    _PROVIDER: ("GET", "HEAD"),
    _CALLBACK: ("GET",),
    _LOGOUT: ("POST",),
}


class UiRoutes:
    """The surface of the pages. sessions: None on a server that needs no sign-in."""

    def __init__(
        self, authenticator: Authenticator, sessions: Sessions | None = None, provider: OidcProvider | None = None
    ) -> None:
        self._authenticator = authenticator
        self._pages = Pages(provider.origins if provider else tuple)
        self._login = LoginRoutes(authenticator, sessions, self._pages, provider) if sessions else None
        self._has_provider = provider is not None

    async def answer(self, request: Request, receive: Receive) -> Response:
        """A page, a file that pages load, or where to go on. Raises: Problem, MethodNotAllowed."""
        path = request.segments[1:]
        if path[:1] == (STATIC,):
            return self._static(request, path)
        if self._login is not None and path in (_LOGIN, _PROVIDER, _CALLBACK, _LOGOUT):
            return await self._answer_login(self._login, request, receive, path)
        if path:
            raise ApiNotFound()
        return await self._home(request)

    def show_problem(self, problem: Problem, request: Request) -> Response:
        """A problem as a page. A browser that goes to a page without a valid credential is sent to the sign-in."""
        if isinstance(problem, Unauthorized) and self._login is not None and _is_navigation(request):
            return redirect(below_root(request, login_path(request)))
        body = problem_body(problem, request)
        values = {"number": problem.status, "text": body["title"], "detail": body.get("detail")}
        page = self._pages.render(request, "problem.html", problem.status, **values)
        return Response(page.status, [*page.headers, *retry_headers(problem)], page.body)

    async def _home(self, request: Request) -> Response:
        """The first page. `/ui` leads to `/ui/`, so that links of pages are relative to one place."""
        if not request.raw_path.endswith("/"):
            return redirect(below_root(request, HOME), status=308)
        if (options := read_only_options(request)) is not None:
            return options
        request = await self._authenticator.authenticate(request)
        has_session = session_cookie(request) is not None and self._login is not None
        return self._pages.render(request, "home.html", caller=request.caller, is_signed_in=has_session)

    async def _answer_login(
        self, login: LoginRoutes, request: Request, receive: Receive, path: tuple[str, ...]
    ) -> Response:
        methods = _METHODS[path]
        if (options := options_response(request, methods, ", ".join((*methods, "OPTIONS")))) is not None:
            return options
        if path == _LOGOUT:
            return await login.sign_out(request)
        if path == _LOGIN and request.method == "POST":
            return await login.take_form(request, receive)
        if path == _CALLBACK and self._has_provider:
            return await login.take_callback(request)
        next = local_path(all_query_params(request).get("next", [""])[0])
        if path == _LOGIN:
            return await login.show(request, next)
        if not self._has_provider:
            raise ApiNotFound()
        return await login.go_to_provider(request, next)

    def _static(self, request: Request, path: tuple[str, ...]) -> Response:
        if (options := read_only_options(request)) is not None:
            return options
        response = static_response(path[1]) if len(path) == 2 else None
        if response is None:
            raise ApiNotFound()
        return response


def _is_navigation(request: Request) -> bool:
    """Whether a browser goes to a page. Over http, browsers say so for their own machine only."""
    mode = request.header(b"sec-fetch-mode")
    if mode is None:
        return request.method == "GET" and "text/html" in (request.header(b"accept") or "")
    return request.method == "GET" and mode == "navigate"

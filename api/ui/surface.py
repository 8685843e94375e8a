"""The surface of the paths below `/ui/`: finds the page of a request and answers with it, or with a problem's page."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from starlette.types import Receive

from annals.api.auth.callers import Authenticator
from annals.api.auth.oidc.provider import OidcProvider
from annals.api.auth.sessions.sessions import Sessions
from annals.api.http.methods import options_response, read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.ui.frame.asof_form import asof_redirect
from annals.api.ui.own_api import OwnApi
from annals.api.ui.page_context import PageContext
from annals.api.ui.page_route import PageRoute
from annals.api.ui.pages import Pages
from annals.api.ui.problem_page import TEMPLATE, heading, problem_page, shown_problem, with_retry
from annals.api.ui.redirect import redirect
from annals.api.ui.routes import PAGES
from annals.api.ui.sign_in.local_paths import HOME, below_root, login_path
from annals.api.ui.sign_in.login import LOGIN_METHODS, LoginRoutes
from annals.api.ui.static_files import STATIC, static_response
from annals.domain.errors.http_errors import Forbidden, TookTooLong, Unauthorized
from annals.domain.errors.problems import ApiNotFound, BadRequest, Problem

UI: Final = "ui"
#: The time that a page may take, in seconds (UI-18).
PAGE_SECONDS: Final = 5
_NARROWER: Final = "ask for less: fewer rows, a path further down, or a shorter time"


class UiRoutes:
    """The surface of the pages.

    own_api: what pages read and write. sessions: None on a server without sign-in. warnings: about the settings, for
    the first page.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        own_api: OwnApi,
        sessions: Sessions | None = None,
        provider: OidcProvider | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self._authenticator = authenticator
        self._own_api = own_api
        self._warnings = warnings
        self._pages = Pages(
            PAGES, can_sign_in=sessions is not None, form_origins=provider.origins if provider else tuple
        )
        self._login = LoginRoutes(authenticator, sessions, self._pages, provider) if sessions else None

    async def answer(self, request: Request, receive: Receive) -> Response:
        """A page, a file that pages load, or where to go on. Raises: Problem, MethodNotAllowed."""
        path = request.segments[1:]
        if path[:1] == (STATIC,):
            return _static_file(request, path)
        if not path and not request.raw_path.endswith("/"):  # the first page has one URL
            return redirect(below_root(request, HOME), status=308)
        if self._login is not None and path in LOGIN_METHODS:
            return await self._login.answer(request, receive, path)
        route, path_params = PAGES.find(path) or (_UNKNOWN, {})
        if (options := options_response(request, route.methods, ", ".join((*route.methods, "OPTIONS")))) is not None:
            return options
        try:
            request = await self._authenticate(request, is_page=route is not _UNKNOWN)
        except Unauthorized:
            if self._login is None or not (route.keeps_form and self._login.may_keep_form(request)):
                raise
            return await self._login.ask_again(request, receive, route.secret_fields)
        page = PageContext(request, receive, route, path_params, self._own_api, PAGES, self._pages, self._warnings)
        try:
            return await _answer_page(page)
        except Problem as problem:
            refusal = self._authenticator.refusal(problem, request)
            if isinstance(refusal, Unauthorized):  # leads to the sign-in
                raise refusal from None
            return await problem_page(page, refusal)

    async def _authenticate(self, request: Request, *, is_page: bool) -> Request:
        """The request with its caller. Raises: Unauthorized, TooManyRequests; ApiNotFound for a path of no page."""
        try:
            return await self._authenticator.authenticate(request)
        except Unauthorized:
            if not is_page:
                raise ApiNotFound() from None
            raise

    def show_problem(self, problem: Problem, request: Request) -> Response:
        """A problem that came before the page: it has no caller.

        A browser that goes to a page without a valid credential is sent to the sign-in.
        """
        if isinstance(problem, Unauthorized) and self._login is not None and _is_navigation(request):
            return redirect(below_root(request, login_path(request)))
        shown = shown_problem(problem, request)
        response = self._pages.render_bare(
            request, TEMPLATE, heading(problem), problem.status, problem=shown, timeline=""
        )
        return with_retry(response, problem)


async def _answer_page(page: PageContext) -> Response:
    """The page, or where the form "As of" leads. Raises: Problem."""
    if page.asof is not None and not _may_have_asof(page):
        raise BadRequest(error_detail='this page shows the present and takes no "asof"; go to it without')
    if page.route.needs_admin and not page.caller.is_admin:
        raise Forbidden(caller=page.caller.name)
    if page.route.takes_asof and (response := asof_redirect(page.request)) is not None:
        return response
    if page.request.method == "POST":  # a write is carried out completely
        return await page.route.answer(page)
    try:
        async with asyncio.timeout(PAGE_SECONDS):
            if page.follows_changes:
                page.first_head = await page.read_head()
            return await page.route.answer(page)
    except TimeoutError:
        raise TookTooLong(error_detail=_NARROWER) from None


def _may_have_asof(page: PageContext) -> bool:
    is_write = page.request.method == "POST"
    return page.route.writes_with_asof if is_write else page.route.takes_asof


async def _unknown_page(page: PageContext) -> Response:
    raise ApiNotFound()


#: The page of a path that is no page's.
_UNKNOWN: Final = PageRoute("", _unknown_page)


def _static_file(request: Request, path: tuple[str, ...]) -> Response:
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

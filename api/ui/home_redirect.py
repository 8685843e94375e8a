"""Sends a browser from the root of the registry to the first page; the API answers all other clients (UI-11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from annals.api.feeds.formats import negotiate_format
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.ui.redirect import redirect
from annals.api.ui.sign_in.local_paths import HOME, below_root
from annals.domain.errors.http_errors import NotAcceptable

_VARY: Final = (b"vary", b"accept, sec-fetch-mode")
#: Whether a media type is a page; a client that takes both equally gets the API's answer.
_IS_PAGE: Final = {"application/json": False, "text/html": True}


class HomeRedirect:
    """What the root of the registry answers to browsers. has_pages: whether the server has pages at the moment."""

    def __init__(self, has_pages: Callable[[], bool]) -> None:
        self._has_pages = has_pages

    def redirect(self, request: Request) -> Response | None:
        """Where a browser goes that opens the root; None for a request that the API answers."""
        wants_page = _is_home(request) and _is_navigation(request) and self._has_pages()
        return redirect(below_root(request, HOME)) if wants_page else None

    def add_vary(self, response: Response, request: Request) -> Response:
        """The response; that of the root says that it depends on what the client is."""
        return replace(response, headers=[*response.headers, _VARY]) if _is_home(request) else response


def _is_home(request: Request) -> bool:
    return request.raw_path in ("", "/") and not request.query and request.method in ("GET", "HEAD")


def _is_navigation(request: Request) -> bool:
    """Whether the client prefers a page, and does not say that it loads something else."""
    if request.header(b"sec-fetch-mode") not in (None, "navigate"):
        return False
    try:
        return negotiate_format(request.header(b"accept"), _IS_PAGE)
    except NotAcceptable:
        return False

"""The text of a new key on its way to the page that shows it once (UI-121).

It travels in a cookie, not in the server: the page after the form may come from another process, and a reload shows no
key and makes none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.http.session_cookie import cookie_header, read_cookie
from annals.domain.access.keys import parse_key

_COOKIE: Final = "annals-new-key"
#: Seconds that a browser has to load the next page.
_MAX_AGE: Final = 60


class ShownKey(NamedTuple):
    """A key that a page shows once."""

    id: str
    text: str


def with_new_key(response: Response, request: Request, key: str) -> Response:
    """The response that leads to the page, with the key for it."""
    return _with_headers(response, [cookie_header(request, _COOKIE, key, _MAX_AGE)])


def read_new_key(request: Request) -> ShownKey | None:
    """The key that this page is to show; None without one."""
    key = parse_key(read_cookie(request, _COOKIE) or "") if request.method == "GET" else None
    return ShownKey(key.id, key.text) if key else None


def without_new_key(response: Response, request: Request) -> Response:
    """The page that has shown the key, which the browser then forgets."""
    return _with_headers(response, [cookie_header(request, _COOKIE, "", 0)])


def _with_headers(response: Response, headers: Headers) -> Response:
    return Response(response.status, [*response.headers, *headers], response.body)

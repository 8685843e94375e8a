"""CORS: lets pages of the configured origins, and no others, use the registry from a browser.

Spec: the Fetch standard, "CORS protocol".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response

ANY_ORIGIN: Final = "*"
_ALLOW_METHODS: Final = (b"access-control-allow-methods", b"GET, HEAD, OPTIONS, PUT, PATCH, POST, DELETE")
#: Seconds for which a browser may cache a preflight.
_MAX_AGE: Final = (b"access-control-max-age", b"7200")
#: All headers: metadata of documents is in headers whose names depend on the model.
_EXPOSE_HEADERS: Final = (b"access-control-expose-headers", b"*")
_VARY: Final = (b"vary", b"origin")


class Cors:
    """The CORS rules of one server. origins: `https://a.example, https://b.example` or `*`; None to disable CORS."""

    def __init__(self, origins: str | None) -> None:
        self._origins = frozenset(parse_origins(origins or ""))

    def preflight(self, request: Request) -> Response | None:
        """The response to a CORS preflight; None for any other request."""
        if request.method != "OPTIONS" or not self._origins:
            return None
        origin, method = request.header(b"origin"), request.header(b"access-control-request-method")
        if method is None or origin is None or not self._is_allowed(origin):
            return None
        requested_headers = request.header(b"access-control-request-headers")
        headers = [(b"access-control-allow-headers", requested_headers.encode("latin-1"))] if requested_headers else []
        return Response(204, [root_link(request.base), _ALLOW_METHODS, _MAX_AGE, *headers])

    def add_headers(self, response: Response, request: Request) -> Response:
        """The response with CORS headers, so that pages of allowed origins can read it."""
        if not self._origins:
            return response
        return replace(response, headers=[*response.headers, *self._headers(request.header(b"origin"))])

    def may_write(self, origin: str | None, *, has_credential: bool) -> bool:
        """Whether a page of a foreign origin may send a write. has_credential: which the page has put into the request;
        if all origins are allowed, a write needs one.
        """
        return (origin is not None and origin in self._origins) or (ANY_ORIGIN in self._origins and has_credential)

    def _headers(self, origin: str | None) -> Headers:
        if ANY_ORIGIN in self._origins:
            return [(b"access-control-allow-origin", b"*"), _EXPOSE_HEADERS]
        if origin is None or not self._is_allowed(origin):
            return [_VARY]
        return [(b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSE_HEADERS, _VARY]

    def _is_allowed(self, origin: str) -> bool:
        return ANY_ORIGIN in self._origins or origin in self._origins


def parse_origins(origins: str) -> tuple[str, ...]:
    """The origins in a comma-separated list. Raises: ValueError for an invalid origin."""
    parsed_origins = tuple(part.strip() for part in origins.split(",") if part.strip())
    for origin in parsed_origins:
        url_parts = urlsplit(origin)
        if origin != ANY_ORIGIN and f"{url_parts.scheme}://{url_parts.netloc}" != origin:
            raise ValueError(f"{origin} is not an origin such as https://example.com")
    return parsed_origins

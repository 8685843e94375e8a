"""What browsers need to let pages from elsewhere use the registry: the origins of a setting, and no others.

Spec: the Fetch standard, "CORS protocol".
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from api.http.problem_response import root_link
from api.http.request import Request
from api.http.response import Headers, Response

ANY_ORIGIN: Final = "*"
_METHODS: Final = (b"access-control-allow-methods", b"GET, HEAD, OPTIONS, PUT, PATCH, POST, DELETE")
#: Seconds for which a browser need not ask again.
_KEPT: Final = (b"access-control-max-age", b"7200")
#: Metadata of documents is in headers whose names the model decides.
_EXPOSED: Final = (b"access-control-expose-headers", b"*")
_VARY: Final = (b"vary", b"origin")


class Cors:
    """The rules of one server. origins: `https://a.example, https://b.example` or `*`; None for no rules at all."""

    def __init__(self, origins: str | None) -> None:
        self._origins = frozenset(parse_origins(origins or ""))

    def preflight(self, request: Request) -> Response | None:
        """The answer to a browser that asks whether a page may send what it wants to send; None to all others."""
        if request.method != "OPTIONS" or not self._origins:
            return None
        origin, method = request.header(b"origin"), request.header(b"access-control-request-method")
        if method is None or origin is None or not self._allows(origin):
            return None
        wanted = request.header(b"access-control-request-headers")
        headers = [(b"access-control-allow-headers", wanted.encode("latin-1"))] if wanted else []
        return Response(204, [root_link(request.base), _METHODS, _KEPT, *headers])

    def allowed(self, answer: Response, request: Request) -> Response:
        """The same answer, readable for the page that it goes to where its origin is allowed."""
        if not self._origins:
            return answer
        return replace(answer, headers=[*answer.headers, *self._headers(request.header(b"origin"))])

    def may_write(self, origin: str | None, credential: bool) -> bool:
        """Whether a page of an origin that is not this server's may change something.

        credential: whether the request has one that browsers do not send by themselves; where all origins are allowed,
        a change needs it.
        """
        return (origin is not None and origin in self._origins) or (ANY_ORIGIN in self._origins and credential)

    def _headers(self, origin: str | None) -> Headers:
        if ANY_ORIGIN in self._origins:
            return [(b"access-control-allow-origin", b"*"), _EXPOSED]
        if origin is None or not self._allows(origin):
            return [_VARY]
        return [(b"access-control-allow-origin", origin.encode("latin-1")), _EXPOSED, _VARY]

    def _allows(self, origin: str) -> bool:
        return ANY_ORIGIN in self._origins or origin in self._origins


def parse_origins(origins: str) -> tuple[str, ...]:
    """The origins in a list with commas. Raises: ValueError for what is no origin."""
    found = tuple(part.strip() for part in origins.split(",") if part.strip())
    for origin in found:
        parts = urlsplit(origin)
        if origin != ANY_ORIGIN and f"{parts.scheme}://{parts.netloc}" != origin:
            raise ValueError(f"{origin} is no origin, such as https://example.com")
    return found

"""Headers for caches: an answer to a credential is for its caller alone (ACC-82)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from annals.api.http.request import Request
from annals.api.http.response import Headers, Response

_CREDENTIAL_HEADERS: Final = (b"authorization", b"cookie")
_PRIVATE: Final = b"private"
_VARY: Final = (b"vary", b"authorization, cookie")


def has_credential(request: Request) -> bool:
    """Whether a request has a header that can name its caller."""
    return any(name in _CREDENTIAL_HEADERS for name, _ in request.headers)


def mark_private(response: Response) -> Response:
    """The response with headers that keep shared caches from giving it to other callers."""
    headers: Headers = []
    directives = b""
    for name, value in response.headers:
        if name == b"cache-control":
            directives = value
        else:
            headers.append((name, value))
    if _PRIVATE not in directives:
        directives = _PRIVATE + b", " + directives if directives else _PRIVATE
    return replace(response, headers=[*headers, (b"cache-control", directives), _VARY])

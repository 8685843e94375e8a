"""The cookie of a session in a browser.

Under https its name has the prefix `__Host-`, with which browsers take it from this host alone, and over TLS alone.
RFC 6265bis, "Cookie Name Prefixes".
"""

from __future__ import annotations

from typing import Final

from annals.api.http.request import Request
from annals.api.http.response import Headers

_NAME: Final = "annals"
_SECURE_PREFIX: Final = "__Host-"


def session_cookie(request: Request) -> str | None:
    """The value of the session's cookie; None without one."""
    return read_cookie(request, _NAME)


def set_session_cookie(request: Request, value: str) -> Headers:
    """The header that gives a browser the cookie, until it is closed."""
    return [cookie_header(request, _NAME, value)]


def clear_session_cookie(request: Request) -> Headers:
    """The header that takes the cookie away from a browser; none if the request has no cookie."""
    return [cookie_header(request, _NAME, "", 0)] if session_cookie(request) is not None else []


def read_cookie(request: Request, name: str) -> str | None:
    """The value of a cookie; None without one. name: without the prefix."""
    return _cookies(request).get(_full_name(request, name))


def cookie_names(request: Request, prefix: str) -> list[str]:
    """The names of cookies that begin with a prefix, the oldest first (RFC 6265, 5.4); all without `__Host-`."""
    start = _full_name(request, prefix)
    return [prefix + name.removeprefix(start) for name in _cookies(request) if name.startswith(start)]


def has_session_cookie(request: Request) -> bool:
    """Whether a request has a session's cookie by any of its names, so that a browser sends it."""
    cookies = _cookies(request)
    return _NAME in cookies or _SECURE_PREFIX + _NAME in cookies


def cookie_header(request: Request, name: str, value: str, max_age: int | None = None) -> tuple[bytes, bytes]:
    """A header that sets a cookie for all paths, which no script can read. max_age: seconds; 0 deletes the cookie."""
    parts = [f"{_full_name(request, name)}={value}", "Path=/", "HttpOnly", "SameSite=Lax"]
    if max_age is not None:
        parts.append(f"Max-Age={max_age}")
    if _is_secure(request):
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode()


def _cookies(request: Request) -> dict[str, str]:
    """The cookies of a request by their names."""
    texts = (text.decode("latin-1") for header, text in request.headers if header == b"cookie")
    pairs = (pair.strip().partition("=") for text in texts for pair in text.split(";"))
    return {name: value for name, _, value in pairs}


def _full_name(request: Request, name: str) -> str:
    return f"{_SECURE_PREFIX if _is_secure(request) else ''}{name}"


def _is_secure(request: Request) -> bool:
    """Whether the browser's connection has TLS: by the public URL, or by the connection itself."""
    return request.base.startswith("https:") or request.scope.get("scheme") == "https"

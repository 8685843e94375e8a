"""The cookie of a session in a browser."""

from __future__ import annotations

from typing import Final

from annals.api.http.request import Request

#: Its names: where the browser's connection has TLS, and where it has not.
SESSION_COOKIES: Final = ("__Host-annals", "annals")


def session_cookie(request: Request) -> str | None:
    """The value of the session's cookie; None without one."""
    for header, text in request.headers:
        if header != b"cookie":
            continue
        pairs = (pair.strip().partition("=") for pair in text.decode("latin-1").split(";"))
        cookies = {name: value for name, _, value in pairs}
        if (found := next((cookies[name] for name in SESSION_COOKIES if name in cookies), None)) is not None:
            return found
    return None

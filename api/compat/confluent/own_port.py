"""A second port of the same server, whose root is Confluent's API: clients have 8081 in their files (CSR-102)."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from annals.api.compat.confluent.paths import BASE, canonical_path
from annals.api.http.request import Request

#: The key in the scope of a request to the port. Its value is the path as the client sent it, undecoded.
_SENT_TO_OWN_PORT: Final = "annals.confluent_port"


class ConfluentPort:
    """The application, with the paths of requests to one port moved below `BASE`."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope.get("server") or ("", 0))[1] == self._port:
            scope = canonical_scope(scope)
        await self._app(scope, receive, send)


def canonical_scope(scope: Scope) -> Scope:
    """The scope of a request to the port of Confluent's API, with the canonical path."""
    raw_path = scope["raw_path"].decode("latin-1")
    scope = {**scope, _SENT_TO_OWN_PORT: raw_path}
    canonical = canonical_path(raw_path)
    if canonical != raw_path:
        scope |= {"raw_path": canonical.encode("latin-1"), "path": BASE + scope["path"]}
    return scope


def is_at_own_port(scope: Scope) -> bool:
    """Whether the scope is of a request to the port of Confluent's API, with the canonical path already."""
    return _SENT_TO_OWN_PORT in scope


def path_as_sent(request: Request) -> str:
    """The decoded path as the client knows it: without the `BASE` that the port, or a host name of the API, adds."""
    sent: str = request.scope.get(_SENT_TO_OWN_PORT) or request.scope["raw_path"].decode("latin-1")
    # What is sent may begin with the path of the application, so only its end is compared.
    return request.path if sent.endswith(request.raw_path) else request.path.removeprefix(BASE)

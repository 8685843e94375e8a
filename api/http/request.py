"""A parsed HTTP request: path, query, headers, and the root for URLs in its response.

It is part of the fast path; see `api/server/dispatch.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import unquote, urlsplit

from starlette.types import Scope

from annals.api.http.connections.trusted_proxies import HOST_PATTERN, TrustedProxies
from annals.domain.access.roles import ANONYMOUS, Caller

DETAILS_SUFFIX: Final = "$details"
READ_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS"))
#: Trusts no proxy.
_NO_PROXIES: Final = TrustedProxies(None)


@dataclass(frozen=True, slots=True)
class Request:
    """path: decoded, below the registry's root, as errors name it. segments: the path's segments, without `$details`.

    base: absolute URL of the registry's root, without a trailing `/`. raw_path: the path as sent, one character per
    byte. caller: ANONYMOUS until the caller is authenticated. scope: of ASGI, for what belongs to the connection.
    """

    method: str
    path: str
    segments: tuple[str, ...]
    details: bool
    query: bytes
    headers: list[tuple[bytes, bytes]]
    base: str
    raw_path: str = ""
    caller: Caller = ANONYMOUS
    scope: Scope = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_read(self) -> bool:
        """True if the method does not change the registry."""
        return self.method in READ_METHODS

    @property
    def url(self) -> str:
        """The absolute URL of the request."""
        return self.base + self.path + ("?" + self.query.decode("latin-1") if self.query else "")

    def with_path(self, raw_path: str) -> Request:
        """The same request for another path. raw_path: the undecoded path."""
        path, segments, details = _split_path(raw_path)
        return replace(self, path=path, segments=segments, details=details, raw_path=raw_path)

    def with_headers(self, headers: list[tuple[bytes, bytes]]) -> Request:
        """The same request with other headers."""
        return replace(self, headers=headers)

    def header(self, name: bytes) -> str | None:
        """The value of a header, whose name is in lower case; None if it is absent."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)

    @property
    def media_type(self) -> str:
        """The type of the body, in lower case and without parameters; empty if the request names none."""
        return (self.header(b"content-type") or "").partition(";")[0].strip().lower()


def build_request(scope: Scope, public_url: str | None = None, proxies: TrustedProxies = _NO_PROXIES) -> Request:
    """The request in an ASGI scope. public_url: root of the registry if configured."""
    root = scope.get("app_root_path", scope.get("root_path", ""))
    raw_path = scope["raw_path"].decode("latin-1")
    raw_path = raw_path[len(root) :] if root and raw_path.startswith(root) else raw_path
    path, segments, details = _split_path(raw_path)
    base_url = public_url if public_url is not None else (proxies.root_url(scope) or _base_url(scope)) + root
    query, headers = scope["query_string"], scope["headers"]
    return Request(scope["method"], path, segments, details, query, headers, base_url, raw_path, ANONYMOUS, scope)


def _split_path(raw_path: str) -> tuple[str, tuple[str, ...], bool]:
    """The decoded path, its segments, and whether the last segment had `$details`, which is removed."""
    # The path is split before decoding, so that an encoded slash never separates segments.
    segments = tuple(raw_path.rstrip("/").split("/")[1:])
    if "%" in raw_path:
        segments = tuple(unquote(segment) for segment in segments)
        raw_path = unquote(raw_path)
    details = bool(segments) and segments[-1].endswith(DETAILS_SUFFIX)
    if details:
        last_segment = segments[-1].removesuffix(DETAILS_SUFFIX)
        segments = (*segments[:-1], last_segment) if last_segment else segments[:-1]
    return raw_path or "/", segments, details


def request_host(scope: Scope, proxies: TrustedProxies = _NO_PROXIES) -> str:
    """The host of a request, from the client or from a trusted proxy; empty if unknown."""
    root = proxies.root_url(scope)
    return urlsplit(root).netloc if root is not None else _host_header(scope)


def _host_header(scope: Scope) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")


def _base_url(scope: Scope) -> str:
    host = _host_header(scope)
    if not HOST_PATTERN.match(host):
        host = ":".join(_server_address(scope))
    return f"{scope['scheme']}://{host}"


def _server_address(scope: Scope) -> Iterator[str]:
    return (str(part) for part in scope.get("server") or ("localhost",) if part is not None)

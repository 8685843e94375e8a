"""One HTTP request, taken apart: raw path, query, headers and the root that its answer's URLs start from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from starlette.types import Scope

from api.proxies import HOST, Proxies
from domain.roles import ANONYMOUS, Caller

DETAILS: Final = "$details"
READS: Final = frozenset(("GET", "HEAD", "OPTIONS"))
#: No proxy is trusted.
_NONE: Final = Proxies(None)


class Disconnected(Exception):
    """The client went away before its request was complete."""


@dataclass(frozen=True, slots=True)
class Request:
    """path: decoded, below the registry's root, as errors name it. segments: the same in parts, `$details` taken off.

    base: absolute URL of the registry's root, without a trailing `/`. raw: the path as it was sent, a character for
    each byte. caller: who asks, once that is known.
    """

    method: str
    path: str
    segments: tuple[str, ...]
    details: bool
    query: bytes
    headers: list[tuple[bytes, bytes]]
    base: str
    raw: str = ""
    caller: Caller = ANONYMOUS

    @property
    def reads(self) -> bool:
        """True where the method leaves the registry as it is."""
        return self.method in READS

    @property
    def url(self) -> str:
        """The absolute URL that was asked for."""
        return self.base + self.path + ("?" + self.query.decode("latin-1") if self.query else "")

    def header(self, name: bytes) -> str | None:
        """The value of a header, given in lower case; None when it is absent."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)


def request_of(scope: Scope, public_url: str | None = None, proxies: Proxies = _NONE) -> Request:
    """The request in an ASGI scope. public_url: root of the registry where it is configured."""
    root = scope.get("app_root_path", scope.get("root_path", ""))
    raw = scope["raw_path"].decode("latin-1")
    sent = raw = raw[len(root) :] if root and raw.startswith(root) else raw
    # Split first, decode then: an encoded slash never makes a segment.
    segments = tuple(raw.rstrip("/").split("/")[1:])
    if "%" in raw:
        segments = tuple(unquote(segment) for segment in segments)
        raw = unquote(raw)
    details = bool(segments) and segments[-1].endswith(DETAILS)
    if details:
        last = segments[-1].removesuffix(DETAILS)
        segments = (*segments[:-1], last) if last else segments[:-1]
    base = public_url if public_url is not None else (proxies.root(scope) or _base(scope)) + root
    query, headers = scope["query_string"], scope["headers"]
    return Request(scope["method"], raw or "/", segments, details, query, headers, base, sent)


def _base(scope: Scope) -> str:
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    if not HOST.match(host):
        host = ":".join(_address(scope))
    return f"{scope['scheme']}://{host}"


def _address(scope: Scope) -> Iterator[str]:
    return (str(part) for part in scope.get("server") or ("localhost",) if part is not None)

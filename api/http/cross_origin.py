"""Writes that browsers send: from pages of this server and of the origins that may use it, and from no others.

A browser says where a request comes from, in headers that no page can change; who sends neither header is no browser.
Rules ACC-84 to ACC-86. W3C, "Fetch Metadata Request Headers"; RFC 6454, "The HTTP Origin Header Field".
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from api.http.cors import Cors
from api.http.request import Request
from domain.errors.http_errors import CrossOrigin, UnsupportedMediaType

#: What `Sec-Fetch-Site` says of a page of this server, and of a person who typed the address.
_OWN: Final = frozenset(("same-origin", "none"))
#: Media types that a page anywhere can send without asking first.
_FORMS: Final = frozenset(("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"))


def check_origin(request: Request, host: str, cors: Cors) -> None:
    """Raises: CrossOrigin for a write that a page of another origin sends. host: that the request was sent to."""
    if request.reads:
        return
    site, origin = request.header(b"sec-fetch-site"), request.header(b"origin")
    if site is None and origin is None:
        return
    own = site in _OWN if site is not None else _is_own(origin or "", request.base, host)
    if own or cors.may_write(origin, request.header(b"authorization") is not None):
        return
    raise CrossOrigin(origin=origin or site)


def check_form(request: Request) -> None:
    """Raises: UnsupportedMediaType for a body of a browser as forms have it. For what takes no documents."""
    if request.reads or not (_sent(request, b"sec-fetch-site") or _sent(request, b"origin")):
        return
    given = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if given in _FORMS:
        raise UnsupportedMediaType(list="application/json")


def _sent(request: Request, name: bytes) -> bool:
    return request.header(name) is not None


def _is_own(origin: str, base: str, host: str) -> bool:
    """Whether an origin is this server's: that of its root, or the host that the browser used.

    The scheme does not count for the host: a proxy may take TLS away and not say so.
    """
    root = urlsplit(base)
    place = origin.partition("://")[2].lower()
    return origin.lower() == f"{root.scheme}://{root.netloc}".lower() or (bool(place) and place == host.lower())

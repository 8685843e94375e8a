"""Refuses browser writes from foreign pages: only this server's pages and allowed origins may write.

A browser names the origin of a request in headers that a page cannot change. A client without these headers is not a
browser.
Rules ACC-84 to ACC-86. W3C, "Fetch Metadata Request Headers"; RFC 6454, "The HTTP Origin Header Field".
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final
from urllib.parse import urlsplit

from annals.api.http.browsers.cors import Cors
from annals.api.http.connections.tls import CLIENT_CERTIFICATE
from annals.api.http.request import Request
from annals.api.http.session_cookie import has_session_cookie
from annals.domain.errors.http_errors import CrossOrigin, UnsupportedMediaType

#: Values of `Sec-Fetch-Site` for a page of this server, and for an address typed by a user.
_SAME_SITE: Final = frozenset(("same-origin", "none"))
#: Media types that any page can send without a CORS preflight.
_FORM_TYPES: Final = frozenset(("application/x-www-form-urlencoded", "multipart/form-data", "text/plain"))
#: The first segment of the paths of pages, whose forms no other page may send.
_PAGES: Final = ("ui",)


def check_origin(request: Request, host: str, cors: Cors, *, checks_credentials: bool) -> None:
    """Checks the origin of a write. host: that the request was sent to.

    checks_credentials: whether an `Authorization` header proves anything to this server.

    Raises: CrossOrigin if a page of a foreign origin sends the write.
    """
    if request.is_read:
        return
    fetch_site, origin = request.header(b"sec-fetch-site"), request.header(b"origin")
    if fetch_site is None and origin is None:
        # No browser, as these send one of both; a cookie of a session comes from a browser all the same (ACC-85).
        if has_session_cookie(request):
            raise CrossOrigin(origin="unknown")
        return
    is_same_origin = (
        fetch_site in _SAME_SITE if fetch_site is not None else _is_own_origin(origin or "", request.base, host)
    )
    if is_same_origin:
        return
    credential = _CredentialSource.of(request) if checks_credentials else _CredentialSource.NONE
    if (
        request.segments[:1] == _PAGES
        or credential is _CredentialSource.BROWSER
        or not cors.may_write(origin, has_credential=credential is _CredentialSource.PAGE)
    ):
        raise CrossOrigin(origin=origin or fetch_site)


def check_form(request: Request) -> None:
    """Checks that a browser does not send a form. For paths that accept no documents.

    Raises: UnsupportedMediaType for a body with the media type of a form.
    """
    if request.is_read or not (_has_header(request, b"sec-fetch-site") or _has_header(request, b"origin")):
        return
    if request.media_type in _FORM_TYPES:
        raise UnsupportedMediaType(list="application/json")


class _CredentialSource(Enum):
    """Who has put a credential into a request of a page: the page itself, or the browser."""

    NONE = auto()
    PAGE = auto()
    BROWSER = auto()

    @classmethod
    def of(cls, request: Request) -> _CredentialSource:
        """The source of the credential of a request from another origin.

        A browser adds cookies, cached passwords and certificates by itself, but only to requests that any page can
        send without a preflight: the answers to preflights do not allow it to (ACC-88).
        """
        authorization = request.header(b"authorization")
        if authorization is not None and (authorization[:7].lower() == "bearer " or not _is_simple(request)):
            return cls.PAGE
        has_other = authorization is not None or has_session_cookie(request) or _has_certificate(request)
        return cls.BROWSER if has_other else cls.NONE


def _has_certificate(request: Request) -> bool:
    """Whether a browser has a certificate, which this server or a proxy has asked it for."""
    return CLIENT_CERTIFICATE in request.scope.get("state", {}) or _has_header(request, b"client-cert")


def _is_simple(request: Request) -> bool:
    """Whether a browser sends a write without a preflight."""
    return request.method == "POST" and request.media_type in {"", *_FORM_TYPES}


def _has_header(request: Request, name: bytes) -> bool:
    return request.header(name) is not None


def _is_own_origin(origin: str, base_url: str, host: str) -> bool:
    """Whether an origin is this server's: the origin of its root, or the host that the browser used.

    The host is compared without the scheme, because a proxy may terminate TLS without forwarding that fact.
    """
    root = urlsplit(base_url)
    origin_host = origin.partition("://")[2].lower()
    return origin.lower() == f"{root.scheme}://{root.netloc}".lower() or (
        bool(origin_host) and origin_host == host.lower()
    )

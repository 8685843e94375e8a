"""The one credential of a request: from `Authorization`, else a session's cookie, else a certificate (ACC-11, ACC-12).

Spec: RFC 9110, "Authorization"; RFC 6750, "Authorization Request Header Field"; RFC 7617; RFC 9440, "Client-Cert".
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from annals.api.http.connections.tls import CLIENT_CERTIFICATE
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.request import Request
from annals.api.http.session_cookie import session_cookie


class Scheme(StrEnum):
    """How a request carries a credential."""

    BEARER = "bearer"
    BASIC = "basic"
    SESSION = "session"
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class RequestCredential:
    """What a request proves its caller with.

    secret: the token, the password, the cookie, or a certificate as base64 of its DER. name: of Basic; else empty.
    is_token_too: whether the password of Basic may be a bearer token, as in Confluent's API. is_use: whether a request
    with it uses its session, which otherwise ends after a time without use.
    """

    scheme: Scheme
    secret: str = field(repr=False)
    name: str = ""
    is_token_too: bool = False
    is_use: bool = True

    @property
    def token(self) -> str | None:
        """The secret where it may be a bearer token; else None."""
        return self.secret if self.scheme is Scheme.BEARER or self.is_token_too else None


#: The reason of a credential that was recognised, and is not valid at this time.
EXPIRED: Final = "expired"
#: The reason of a session's cookie that this server has not made. Browsers send those of other registries at its host.
FOREIGN: Final = "foreign"
#: The reason of a good token that is sent as the password of Basic, where that is none.
MISPLACED: Final = "misplaced"


class InvalidCredential(Exception):
    """A credential that names no caller. The message says why, for logs and the console; answers never do.

    reason: a word for metrics. authenticator: which one refused it; empty if none recognised it.
    """

    def __init__(self, message: str, reason: str = "invalid", authenticator: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.authenticator = authenticator

    @property
    def is_guess(self) -> bool:
        """Whether somebody may have guessed it. Cookies of sessions have too many bits for that."""
        return self.reason not in (EXPIRED, FOREIGN, MISPLACED)


_AUTHORIZATION: Final = re.compile(r"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) +(\S+) *\Z")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/\-]+=*\Z")
_EVENT_STREAM: Final = "text/event-stream"
#: Nothing, or one byte sequence of RFC 8941, which may be empty.
_CERTIFICATE_HEADER: Final = re.compile(r"(?::((?:[A-Za-z0-9+/]+={0,2})?):)?\Z")


def find_credential(
    request: Request, schemes: Set[Scheme], proxies: TrustedProxies, *, is_token_too: bool = False
) -> RequestCredential | None:
    """The credential that decides who calls; None if the request has none.

    schemes: those that are on; cookies and certificates of others are ignored. Raises: InvalidCredential.
    """
    values = [value for name, value in request.headers if name == b"authorization"]
    if len(values) > 1:
        raise InvalidCredential("the request has several Authorization headers", "malformed")
    if values:
        return _parse_authorization(values[0].decode("latin-1"), is_token_too)
    if Scheme.SESSION in schemes and (cookie := session_cookie(request)) is not None:
        return RequestCredential(Scheme.SESSION, cookie, is_use=not _follows_a_feed(request))
    if Scheme.CERTIFICATE in schemes and (certificate := _client_certificate(request, proxies)) is not None:
        return RequestCredential(Scheme.CERTIFICATE, certificate)
    return None


def _follows_a_feed(request: Request) -> bool:
    """Whether a request asks for a stream of events, which an open page reads without anybody in front of it."""
    return request.method == "GET" and _EVENT_STREAM in (request.header(b"accept") or "")


def _parse_authorization(header: str, is_token_too: bool) -> RequestCredential:
    match = _AUTHORIZATION.match(header)
    scheme = match[1].lower() if match else ""
    if match and scheme == Scheme.BEARER and _TOKEN.match(match[2]):
        return RequestCredential(Scheme.BEARER, match[2])
    if match and scheme == Scheme.BASIC:
        name, password = parse_basic(match[2])
        return RequestCredential(Scheme.BASIC, password, name, is_token_too)
    raise InvalidCredential(
        "the Authorization header has neither a bearer token nor a name and a password", "malformed"
    )


def parse_basic(text: str) -> tuple[str, str]:
    """The name and the password in base64 of UTF-8. Raises: InvalidCredential."""
    try:
        name, colon, password = b64decode(text, validate=True).decode().partition(":")
    except ValueError:
        raise InvalidCredential("the name and the password are not base64 of UTF-8", "malformed") from None
    if not colon:
        raise InvalidCredential("there is no colon between the name and the password", "malformed")
    return name, password


def _client_certificate(request: Request, proxies: TrustedProxies) -> str | None:
    """The certificate of the client as base64 of its DER; None without one. Raises: InvalidCredential.

    A trusted proxy names it in a header, because the certificate of its connection is its own. A header of any other
    client is ignored (ACC-92). Proxies that write the header from a template send `::` for clients without one.
    """
    if not proxies.is_peer_trusted(request.scope):
        certificate: str | None = request.scope.get("state", {}).get(CLIENT_CERTIFICATE)
        return certificate
    values = [value.decode("latin-1") for name, value in request.headers if name == b"client-cert"]
    if not values:
        return None
    match = _CERTIFICATE_HEADER.match(values[0].strip())
    if match is None or len(values) > 1:
        raise InvalidCredential("the header Client-Cert of a proxy is not one certificate", "malformed", "certificate")
    return match[1] or None

"""Renewal of access tokens with a refresh token, over TLS and with the same address checks as deliveries.

Spec: RFC 6749, "Refreshing an Access Token"; rule SUB-307.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeGuard
from urllib.parse import urlencode

from annals.projections.outgoing.http_client import USER_AGENT, HttpClient, HttpResponse, RequestFailed
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.ports import RenewedTokens
from annals.projections.subscriptions.transport.scrub import scrub_secrets

#: Time limit of a request to the endpoint, in seconds.
RENEWAL_SECONDS: Final = 30.0
#: Largest length of a token in characters, and longest accepted lifetime in seconds.
MAX_TOKEN_LENGTH: Final = 16 * 1024
MAX_LIFETIME_SECONDS: Final = 10 * 365 * 86400

#: OAuth error codes such as `invalid_grant`.
_ERROR_CODE: Final = re.compile(r"[a-z_]{1,64}\Z")
_REQUEST_HEADERS: Final = (
    ("User-Agent", USER_AGENT),
    ("Accept", "application/json"),
    ("Content-Type", "application/x-www-form-urlencoded"),
)


@dataclass(frozen=True, slots=True)
class RenewalFailure:
    """Why a renewal failed.

    code: a status, an OAuth error, or a word.
    message: for the owner, without secrets.
    """

    code: str
    message: str


class TokenRenewal:
    """A client for token endpoints. One instance serves all endpoints and concurrent tasks."""

    def __init__(self, resolver: Resolver, now: Callable[[], float] = time.time) -> None:
        self._resolver, self._now = resolver, now

    async def __call__(self, endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        """See ports.RenewTokens."""
        result = await self.renew(endpoint, refreshtoken)
        return result if isinstance(result, RenewedTokens) else None

    async def renew(self, endpoint: str, refreshtoken: str) -> RenewedTokens | RenewalFailure:
        """The tokens, or the reason for failure, from an endpoint."""
        body = urlencode({"grant_type": "refresh_token", "refresh_token": refreshtoken}).encode()
        try:
            client = HttpClient(endpoint, self._resolver, has_secrets=True)
        except RequestFailed as error:
            return RenewalFailure(error.code, error.message)
        started_at = self._now()
        try:
            response = await client.request("POST", _REQUEST_HEADERS, body, RENEWAL_SECONDS)
        except RequestFailed as error:
            return RenewalFailure(error.code, error.message)
        finally:
            await client.close()
        return _parse_response(response, refreshtoken, started_at)


def _parse_response(response: HttpResponse, refreshtoken: str, started_at: float) -> RenewedTokens | RenewalFailure:
    members = _parse_members(response)
    if response.status != 200:
        error = members.get("error")
        code = error if isinstance(error, str) and _ERROR_CODE.match(error) and refreshtoken not in error else ""
        return RenewalFailure(
            code or str(response.status), scrub_secrets(response.body, [refreshtoken], response.is_complete)
        )
    token, new_refreshtoken = members.get("access_token"), members.get("refresh_token")
    if not _is_token(token) or not (new_refreshtoken in ("", None) or _is_token(new_refreshtoken)):
        return RenewalFailure("answer", "the answer has no access_token that can be used")
    return RenewedTokens(token, _expiry(members.get("expires_in"), started_at), new_refreshtoken or "")


def _parse_members(response: HttpResponse) -> dict[str, Any]:
    """The JSON object of an answer; empty if there is none."""
    if not response.is_complete:
        return {}
    try:
        members = json.loads(response.body)
    except (ValueError, RecursionError):
        return {}
    return members if isinstance(members, dict) else {}


def _is_token(value: Any) -> TypeGuard[str]:
    """Whether a value can be sent in a header and stored."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TOKEN_LENGTH:
        return False
    return value.isascii() and value.isprintable() and value == value.strip()


def _expiry(lifetime: Any, started_at: float) -> float | None:
    """Expiry in seconds since 1970; None without a valid number. Some endpoints write numbers as text."""
    try:
        seconds = float(lifetime)
    except (TypeError, ValueError, OverflowError):
        return None
    return started_at + min(seconds, MAX_LIFETIME_SECONDS) if math.isfinite(seconds) and seconds > 0 else None

"""Renewing access tokens with a refresh token, over TLS and under the same guard as deliveries.

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

from projections.outgoing.http_client import USER_AGENT, HttpClient, HttpResponse, RequestFailed
from projections.outgoing.resolver import Resolver
from projections.subscriptions.ports import RenewedTokens
from projections.subscriptions.transport.scrub import scrub_secrets

#: Seconds that an endpoint may take.
RENEWAL_SECONDS: Final = 30.0
#: Characters of a token, and seconds that one is good for at most.
MAX_TOKEN_LENGTH: Final = 16 * 1024
MAX_LIFETIME_SECONDS: Final = 10 * 365 * 86400

#: Codes such as `invalid_grant`.
_ERROR: Final = re.compile(r"[a-z_]{1,64}\Z")
_FORM: Final = (
    ("User-Agent", USER_AGENT),
    ("Accept", "application/json"),
    ("Content-Type", "application/x-www-form-urlencoded"),
)


@dataclass(frozen=True, slots=True)
class RenewalFailure:
    """Why there are no tokens. code: a status, an OAuth error, or a word; message: for the owner, without secrets."""

    code: str
    message: str


class TokenRenewal:
    """Asks endpoints of tokens. One may be used for all of them, by any number of tasks."""

    def __init__(self, resolver: Resolver, now: Callable[[], float] = time.time) -> None:
        self._resolver, self._now = resolver, now

    async def __call__(self, endpoint: str, refreshtoken: str) -> RenewedTokens | None:
        """See ports.Renew."""
        found = await self.renew(endpoint, refreshtoken)
        return found if isinstance(found, RenewedTokens) else None

    async def renew(self, endpoint: str, refreshtoken: str) -> RenewedTokens | RenewalFailure:
        """What an endpoint answers to a refresh token."""
        body = urlencode({"grant_type": "refresh_token", "refresh_token": refreshtoken}).encode()
        try:
            client = HttpClient(endpoint, self._resolver, private=True)
        except RequestFailed as failed:
            return RenewalFailure(failed.code, failed.message)
        began = self._now()
        try:
            answer = await client.request("POST", _FORM, body, RENEWAL_SECONDS)
        except RequestFailed as failed:
            return RenewalFailure(failed.code, failed.message)
        finally:
            await client.close()
        return _parse_response(answer, refreshtoken, began)


def _parse_response(answer: HttpResponse, refreshtoken: str, began: float) -> RenewedTokens | RenewalFailure:
    members = _members(answer)
    if answer.status != 200:
        error = members.get("error")
        code = error if isinstance(error, str) and _ERROR.match(error) and refreshtoken not in error else ""
        return RenewalFailure(code or str(answer.status), scrub_secrets(answer.body, [refreshtoken], answer.whole))
    token, another = members.get("access_token"), members.get("refresh_token")
    if not _is_token(token) or not (another in ("", None) or _is_token(another)):
        return RenewalFailure("answer", "the answer has no access_token that can be used")
    return RenewedTokens(token, _expires(members.get("expires_in"), began), another or "")


def _members(answer: HttpResponse) -> dict[str, Any]:
    """The JSON object of an answer; empty where it has none."""
    if not answer.whole:
        return {}
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_token(value: Any) -> TypeGuard[str]:
    """Whether this can stand in a header and be kept."""
    return isinstance(value, str) and 0 < len(value) <= MAX_TOKEN_LENGTH and value.isascii() and value.isprintable()


def _expires(given: Any, began: float) -> float | None:
    """Seconds since 1970. Some endpoints write numbers as text; what is no number says nothing."""
    try:
        seconds = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return began + min(seconds, MAX_LIFETIME_SECONDS) if math.isfinite(seconds) and seconds > 0 else None

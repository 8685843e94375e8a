"""Sign-in of the command line at a provider, where the person confirms a code in any browser.

Spec: RFC 8628, "Device Authorization Grant"; OpenID Connect Core 1.0, "Using Refresh Tokens".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

import httpx
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from authlib.oauth2.rfc8628 import DEVICE_CODE_GRANT_TYPE

from annals.api.auth.jwt import unverified_claims
from annals.api.auth.jwt_claims import MAX_TIME, InvalidToken, audiences_of
from annals.api.auth.oidc.provider_metadata import METADATA_PATH, ProviderMetadata, parse_metadata
from annals.api.cli.outcome import InvalidInput, StoreError
from annals.api.cli.sign_ins import SignIn

_TIMEOUT_SECONDS: Final = 10.0
#: Seconds between two questions whether the person has confirmed the code, and how they grow when the provider asks.
_INTERVAL_SECONDS: Final = 5
_SLOWER_SECONDS: Final = 5
#: Seconds for which a code is good at most.
_MAX_SECONDS: Final = 1800
_PENDING: Final = ("authorization_pending", "slow_down")


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A sign-in that waits for its person. user_code: to type at `url`. complete_url: has it already; or is `url`."""

    url: str
    complete_url: str
    user_code: str
    device_code: str = field(repr=False)
    interval: float
    seconds: float


def sign_in_by_device(issuer: str, client_id: str, scopes: str, show: Callable[[DeviceCode], None]) -> SignIn:
    """A new sign-in, once a person has confirmed it. show: tells the person where, and which code.

    Raises: InvalidInput if the person or the provider refuses, or nobody confirms in time; StoreError if the provider
    does not answer as one.
    """
    with _open_client(issuer, client_id) as client:
        code = _begin(client, scopes, issuer)
        show(code)
        tokens = _wait(client, code)
    return _sign_in(tokens, issuer, client_id)


def refresh_sign_in(sign_in: SignIn) -> SignIn:
    """The same sign-in with a new ID token. Raises: as `sign_in_by_device`."""
    issuer = sign_in.issuer
    if not sign_in.refresh_token:
        raise InvalidInput(f"the sign-in at {issuer} has expired, and the provider gave no refresh token.")
    with _open_client(issuer, sign_in.client_id) as client:
        tokens = client.request_tokens("refresh_token", refresh_token=sign_in.refresh_token)
    return _sign_in({"refresh_token": sign_in.refresh_token, **tokens}, issuer, sign_in.client_id)


class _Refusal(Exception):
    """An error in an answer of the provider. code: its word for programs."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        self.code = str(members["error"])
        description = members.get("error_description")
        super().__init__(f"{self.code}: {description}" if description else self.code)


class _Client:
    """A client of the provider without a secret, which follows no redirects."""

    def __init__(self, http: httpx.Client, id: str, metadata: ProviderMetadata) -> None:
        self._http = http
        self._auth = ClientAuth(id, "", "none")
        self.id = id
        self.metadata = metadata

    def request_tokens(self, grant: str, **members: str) -> Mapping[str, Any]:
        """The answer with tokens. Raises: _Refusal, httpx.HTTPError, ValueError."""
        return self.post(self.metadata.token_endpoint, prepare_token_request(grant, "", **members))

    def post(self, endpoint: str, form: str) -> Mapping[str, Any]:
        """The answer to a form. Raises: as `request_tokens`."""
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        url, headers, body = self._auth.prepare("POST", endpoint, headers, form)
        answer = self._http.post(url, headers=headers, content=body)
        members = answer.json()
        if isinstance(members, dict) and isinstance(members.get("error"), str):
            raise _Refusal(members)
        if not isinstance(members, dict) or answer.status_code != 200:
            raise ValueError(f"it answers {answer.status_code}")
        return members


@contextmanager
def _open_client(issuer: str, client_id: str) -> Iterator[_Client]:
    """A client of the provider. Turns its errors into those of the command line."""
    try:
        with httpx.Client(timeout=_TIMEOUT_SECONDS) as http:
            metadata = parse_metadata(http.get(issuer.rstrip("/") + METADATA_PATH).content, issuer)
            yield _Client(http, client_id, metadata)
    except _Refusal as refusal:
        raise InvalidInput(f"{issuer} refuses the client {client_id}: {refusal}.") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StoreError(f"{issuer} does not answer: {error}.") from None
    except ValueError as error:
        raise StoreError(f"{issuer} does not answer as a provider: {error}.") from None


def _begin(client: _Client, scopes: str, issuer: str) -> DeviceCode:
    """Raises: InvalidInput if the provider has no device grant; and as `_Client.post`."""
    endpoint = client.metadata.device_authorization_endpoint
    if endpoint is None:
        raise InvalidInput(f"{issuer} has no device grant; switch it on there for the client {client.id}.")
    members = client.post(endpoint, urlencode({"scope": scopes}))
    url = _text(members, "verification_uri")
    return DeviceCode(
        url,
        str(members.get("verification_uri_complete") or url),
        _text(members, "user_code"),
        _text(members, "device_code"),
        max(1.0, _seconds(members, "interval", _INTERVAL_SECONDS)),
        min(_seconds(members, "expires_in", _MAX_SECONDS), _MAX_SECONDS),
    )


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"its answer has no {name}")
    return value


def _seconds(members: Mapping[str, Any], name: str, default: float) -> float:
    value = members.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"its {name} is no number")
    return float(value)


def _wait(client: _Client, code: DeviceCode) -> Mapping[str, Any]:
    """The tokens, once the person has confirmed the code. Raises: InvalidInput, _Refusal, ValueError."""
    interval, ends = code.interval, time.monotonic() + code.seconds
    while time.monotonic() + interval < ends:
        time.sleep(interval)
        try:
            return client.request_tokens(DEVICE_CODE_GRANT_TYPE, device_code=code.device_code)
        except _Refusal as refusal:
            if refusal.code not in _PENDING:
                raise
            interval += _SLOWER_SECONDS if refusal.code == "slow_down" else 0
        except httpx.TransportError:  # the next question may have an answer
            interval *= 2
    raise InvalidInput(f"nobody has confirmed the code {code.user_code} in time.")


def _sign_in(tokens: Mapping[str, Any], issuer: str, client_id: str) -> SignIn:
    """Raises: InvalidInput if the tokens are not for this client."""
    id_token, refresh_token = tokens.get("id_token"), tokens.get("refresh_token", "")
    if not isinstance(id_token, str) or not isinstance(refresh_token, str):
        raise InvalidInput(f"the answer of {issuer} has no ID token.")
    try:
        claims = unverified_claims(id_token)  # it comes from the provider itself; the server checks its signature
        is_for_client = claims.get("iss") == issuer and client_id in audiences_of(claims)
    except InvalidToken:
        is_for_client = False
    expires = claims.get("exp") if is_for_client else None
    if isinstance(expires, bool) or not isinstance(expires, int | float | Decimal) or not 0 <= expires <= MAX_TIME:
        raise InvalidInput(f"the ID token of {issuer} is not for the client {client_id}.")
    return SignIn(issuer, client_id, float(expires), id_token, refresh_token)

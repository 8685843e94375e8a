"""Requests for tokens at a provider.

Spec: RFC 6749, "Accessing Protected Resources", 4.1.3, 6; RFC 7636.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from annals.api.auth.issuer_requests import send
from annals.api.auth.oidc.oidc_settings import OidcSettings
from annals.api.auth.oidc.provider_metadata import ProviderMetadata
from annals.domain.errors.http_errors import ProviderUnavailable
from annals.domain.values.json_text import InvalidJson, loads
from annals.projections.outgoing.http_client import RequestFailed
from annals.projections.outgoing.resolver import Resolver

#: Statuses of a provider that has not judged the request.
_TEMPORARY: Final = (408, 429)


class TokensRefused(Exception):
    """The provider gives no tokens for this code or refresh token. The message says why, for the log."""


def authorization_url(
    settings: OidcSettings, metadata: ProviderMetadata, state: str, nonce: str, code_verifier: str
) -> str:
    """The URL at which a person signs in."""
    from authlib.oauth2.client import OAuth2Client  # most servers have no provider

    client = OAuth2Client(
        None,
        client_id=settings.client_id,
        redirect_uri=settings.redirect_uri,
        scope=settings.scopes,
        code_challenge_method="S256",
    )
    url, _ = client.create_authorization_url(
        metadata.authorization_endpoint, state=state, code_verifier=code_verifier, nonce=nonce
    )
    return str(url)


async def request_tokens(
    settings: OidcSettings, metadata: ProviderMetadata, resolver: Resolver, grant: str, **members: str
) -> Mapping[str, Any]:
    """The provider's answer with tokens. grant: `grant_type`; members: the other parameters.

    Raises: TokensRefused, ProviderUnavailable.
    """
    from authlib.oauth2.auth import ClientAuth
    from authlib.oauth2.rfc6749.parameters import prepare_token_request

    method = "none" if not settings.client_secret else "client_secret_" + ("post" if metadata.takes_post else "basic")
    client = [settings.client_id, settings.client_secret]
    # RFC 6749, 2.3.1: form-encoded first. The library does not do it.
    auth = ClientAuth(*(map(quote_plus, client) if method == "client_secret_basic" else client), method)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = prepare_token_request(grant, "", **members)
    url, headers, body = auth.prepare("POST", metadata.token_endpoint, headers, body)
    try:
        response = await send(url, resolver, "POST", tuple(headers.items()), body.encode())
        tokens = loads(response.body)
    except (RequestFailed, InvalidJson, ValueError):
        raise ProviderUnavailable() from None
    if 400 <= response.status < 500 and response.status not in _TEMPORARY and isinstance(tokens, dict):
        raise TokensRefused(f"the provider answers {response.status} {str(tokens.get('error', ''))[:100]}")
    if response.status != 200 or not isinstance(tokens, dict):
        raise ProviderUnavailable()
    return tokens

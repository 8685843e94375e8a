"""A provider of OpenID Connect, as sign-in, sessions and sign-out need it (ACC-50 to ACC-52, ACC-56).

Spec: OpenID Connect Core 1.0, "ID Token Validation"; RP-Initiated Logout 1.0; RFC 9207, "Validating the Issuer".
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from annals.api.auth.credentials import InvalidCredential
from annals.api.auth.identity import Identity
from annals.api.auth.jwt_claims import ClaimSettings, InvalidToken, caller_of_claims, member_words
from annals.api.auth.jwt_keys import IssuerKeys
from annals.api.auth.oidc.oidc_settings import OidcSettings
from annals.api.auth.oidc.provider_metadata import MetadataSource
from annals.api.auth.oidc.sign_in_state import SignInState
from annals.api.auth.sessions.provider_tokens import ProviderTokens
from annals.api.auth.sessions.sessions import PROVIDER
from annals.domain.errors.http_errors import ProviderUnavailable
from annals.projections.outgoing.resolver import Resolver

#: Seconds that a page waits to learn whether people can sign in here.
_PAGE_SECONDS: Final = 1.0
#: Where a person is after sign-out, below the public URL.
_SIGNED_OUT_PATH: Final = "/ui/login"
#: Maximum characters of an ID token in the URL of a sign-out; servers and proxies refuse longer URLs.
_MAX_HINT_LENGTH: Final = 4096


class OidcProvider:
    """One provider. Belongs to one event loop.

    claims: which claims have the name and the roles of a caller. reference: see `SessionProvider`.
    """

    def __init__(self, settings: OidcSettings, claims: ClaimSettings, resolver: Resolver) -> None:
        self.name = settings.shown_name
        self.issuer = settings.issuer
        self.reference = f"{settings.issuer} {settings.client_id}"
        self._settings = settings
        self._claims = replace(claims, issuer=settings.issuer, audience=settings.client_id)
        self._resolver = resolver
        self._source = MetadataSource(settings.issuer, resolver)

    async def is_available(self) -> bool:
        """Whether the provider has said where people sign in. Does not wait long for one that has not answered yet."""
        reading = asyncio.ensure_future(self._source.current())
        reading.add_done_callback(asyncio.Future.exception)  # so that nobody misses it if the time is over
        await asyncio.wait((reading,), timeout=_PAGE_SECONDS)
        return self._source.known is not None

    async def keys(self) -> IssuerKeys:
        """The keys that its tokens are signed with. Waits only until they are known. Raises: ProviderUnavailable."""
        return self._source.known_keys or (await self._source.current())[1]

    async def refresh_metadata(self) -> None:
        """Begins to read again what is old, if it has been used; does not wait for it."""
        await self._source.refresh()

    def claims_for(self, client_id: str) -> ClaimSettings:
        """What an ID token for another client of this registry must have."""
        return replace(self._claims, audience=client_id)

    def origins(self) -> tuple[str, ...]:
        """The origins that the forms of pages lead to: of the issuer, and of the endpoints that are known."""
        metadata = self._source.known
        endpoints = (metadata.authorization_endpoint, metadata.end_session_endpoint) if metadata else ()
        urls = [urlsplit(url) for url in (self._settings.issuer, *endpoints) if url]
        return tuple(dict.fromkeys(f"{url.scheme}://{url.netloc}" for url in urls))

    async def sign_in_url(self, state: SignInState, key: bytes) -> str:
        """Where a person signs in. key: of the server's cookies. Raises: ProviderUnavailable."""
        from annals.api.auth.oidc.token_requests import authorization_url

        metadata, _ = await self._source.current()
        return authorization_url(self._settings, metadata, state.state, state.nonce(key), state.code_verifier(key))

    async def check_issuer(self, issuer: str | None) -> None:
        """Checks the `iss` of a callback, which must not come from another provider.

        Raises: InvalidCredential, ProviderUnavailable.
        """
        metadata, _ = await self._source.current()
        if issuer != self._settings.issuer and (issuer is not None or metadata.names_itself):
            raise InvalidCredential("iss of the callback is not the issuer that the settings name", "issuer", PROVIDER)

    async def redeem(self, code: str, state: SignInState, key: bytes) -> tuple[Identity, ProviderTokens]:
        """Who has signed in, and the tokens for its session. code: of the callback.

        Raises: InvalidCredential, ProviderUnavailable.
        """
        members = {
            "code": code,
            "redirect_uri": self._settings.redirect_uri,
            "code_verifier": state.code_verifier(key),
        }
        return await self._request("authorization_code", state.nonce(key), **members)

    async def refresh(self, refresh_token: str) -> tuple[Identity, ProviderTokens]:
        """Who somebody is now, and the next tokens. Raises: as `redeem`."""
        identity, tokens = await self._request("refresh_token", None, refresh_token=refresh_token)
        return identity, replace(tokens, refresh_token=tokens.refresh_token or refresh_token)

    async def sign_out_url(self, id_token: str) -> str | None:
        """Where a person ends the session at the provider; None if it has no such place, or does not answer.

        id_token: of the session, by which the provider knows whose session it is; empty if there is none.
        """
        try:
            metadata, _ = await self._source.current()
        except ProviderUnavailable:
            return None
        endpoint = metadata.end_session_endpoint
        if endpoint is None:
            return None
        members = {
            "client_id": self._settings.client_id,
            "post_logout_redirect_uri": self._settings.public_url + _SIGNED_OUT_PATH,
        }
        if id_token and len(id_token) <= _MAX_HINT_LENGTH:
            members["id_token_hint"] = id_token
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(members)}"

    async def _request(self, grant: str, nonce: str | None, **members: str) -> tuple[Identity, ProviderTokens]:
        from annals.api.auth.oidc.token_requests import TokensRefused, request_tokens

        metadata, keys = await self._source.current()
        try:
            tokens = await request_tokens(self._settings, metadata, self._resolver, grant, **members)
            identity = await self._verify(tokens, keys, nonce)
        except (TokensRefused, InvalidToken) as error:
            raise InvalidCredential(str(error), getattr(error, "reason", "invalid"), PROVIDER) from None
        refresh_token = tokens.get("refresh_token")
        return identity, ProviderTokens(refresh_token if isinstance(refresh_token, str) else "", tokens["id_token"])

    async def _verify(self, tokens: Mapping[str, Any], keys: IssuerKeys, nonce: str | None) -> Identity:
        """Who an ID token names. nonce: that it must have; None for a refreshed one. Raises: InvalidToken."""
        from annals.api.auth.jwt import verify_signature

        id_token = tokens.get("id_token")
        if not isinstance(id_token, str):
            raise InvalidToken("the answer has no ID token")
        claims = await verify_signature(id_token, keys)
        caller, expires = caller_of_claims(claims, self._claims, time.time())
        if "azp" in claims and claims["azp"] != self._settings.client_id:
            raise InvalidToken("azp is not this client")
        if nonce is not None and not _is_equal(claims.get("nonce"), nonce):
            raise InvalidToken("nonce is not the one of this sign-in")
        words = member_words(claims, self._claims)
        origin = f"sign-in at {self.name}"
        return Identity(caller, PROVIDER, expires, origin, claims=words, reference=self.reference)


def _is_equal(value: object, expected: str) -> bool:
    # JSON can have halves of surrogate pairs
    return isinstance(value, str) and hmac.compare_digest(value.encode("utf-8", "surrogatepass"), expected.encode())

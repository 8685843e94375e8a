"""ID tokens that the command line gets at the provider and sends as bearer tokens (ACC-50)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity
from annals.api.auth.jwt_claims import InvalidToken, audiences_of
from annals.api.auth.oidc.provider import OidcProvider

if TYPE_CHECKING:
    from annals.api.auth.jwt import JwtVerifier
    from annals.api.auth.jwt_keys import IssuerKeys


class IdTokenVerifier:
    """The ID tokens of one provider for the client of the command line, which pass the same checks as other JWTs.

    client_id: of the command line at the provider; no token of another client is accepted.
    """

    name: Final = "jwt"
    schemes = frozenset((Scheme.BEARER,))

    def __init__(self, provider: OidcProvider, client_id: str) -> None:
        self._provider = provider
        self._client_id = client_id
        self._keys: IssuerKeys | None = None
        self._verifier: JwtVerifier | None = None

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """See `CredentialVerifier`; JWTs of other issuers, or for other clients, are left to the next one.

        Raises: ProviderUnavailable while its keys are not known.
        """
        claims = _unverified_claims(credential.token)
        if claims is None or not self._is_meant(claims):
            return None
        identity = await (await self._current_verifier()).identify(credential)
        if "azp" in claims and claims["azp"] != self._client_id:
            raise InvalidCredential("azp is not the client of the command line", "invalid")
        return identity

    def listed(self) -> tuple[Identity, ...]:
        """See `CredentialVerifier`: only the provider has a list."""
        return ()

    def _is_meant(self, claims: Mapping[str, Any]) -> bool:
        try:
            audiences = audiences_of(claims)
        except InvalidToken:
            return False
        return claims.get("iss") == self._provider.issuer and self._client_id in audiences

    async def _current_verifier(self) -> JwtVerifier:
        from annals.api.auth.jwt import JwtVerifier

        keys = await self._provider.keys()
        if self._verifier is None or keys is not self._keys:
            self._keys, self._verifier = keys, JwtVerifier(keys, self._provider.claims_for(self._client_id))
        return self._verifier


def _unverified_claims(token: str | None) -> Mapping[str, Any] | None:
    """The claims of what looks like a JWT; None for anything else. They only say which verifier has to check it."""
    if token is None or not token.startswith("ey"):
        return None
    from annals.api.auth.jwt import unverified_claims

    try:
        return unverified_claims(token)
    except InvalidToken:
        return None

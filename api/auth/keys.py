"""API keys, as bearer tokens and as passwords (ACC-12, ACC-43 to ACC-47)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity
from annals.domain.access.keys import PREFIX, ApiKey, parse_key
from annals.projections.access.stored_access import StoredAccess


class KeyVerifier:
    """The keys in the log."""

    name: Final = "keys"
    schemes = frozenset((Scheme.BEARER, Scheme.BASIC))

    def __init__(self, stored: StoredAccess) -> None:
        self._stored = stored

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """See `CredentialVerifier`. A password is a key only if it begins as one."""
        if credential.scheme not in self.schemes or not credential.secret.startswith(PREFIX):
            return None
        key = parse_key(credential.secret)
        if key is None:
            raise InvalidCredential("the API key has a typing error, or is not one of this kind")
        if credential.scheme is Scheme.BASIC and credential.name != key.id and not credential.is_token_too:
            raise InvalidCredential("the user name of an API key has to be the id of the key")
        entries = await self._stored.current()
        stored = entries.keys.get(key.id)
        expiry = stored.expiry_of(key, self._stored.now()) if stored is not None else None
        if stored is None or expiry is None:
            raise InvalidCredential("no API key like this is in force: it was revoked or replaced, or has expired")
        return _identity(stored, expiry, key.hash)

    def listed(self) -> list[Identity]:
        """See `CredentialVerifier`: those in force, each text of a key. Blocks."""
        now = self._stored.now()
        keys = self._stored.refresh().keys.values()
        texts = ((key, text) for key in keys for text in key.texts)
        return [_identity(key, expires, hash) for key, (hash, expires) in texts if now < expires]


def _identity(key: ApiKey, expires: datetime, hash: str) -> Identity:
    origin = f"the API key {key.id}"
    return Identity(key.caller, KeyVerifier.name, expires.timestamp(), origin, key.id, reference=hash)

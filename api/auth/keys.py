"""API keys, as bearer tokens and as passwords (ACC-12, ACC-43 to ACC-47)."""

from __future__ import annotations

from datetime import datetime
from hmac import compare_digest
from typing import Final

from annals.api.auth.credentials import EXPIRED, InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity
from annals.domain.access.keys import PREFIX, ApiKey, KeyText, parse_key
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
        if stored is None or not _has_text(stored, key):
            raise InvalidCredential("no API key like this is known: it was revoked or replaced, or never made")
        expiry = stored.expiry_of(key, self._stored.now())
        if expiry is None:
            raise InvalidCredential("the API key has expired, or was replaced", EXPIRED)
        return _identity(stored, expiry, key.hash)

    def listed(self) -> list[Identity]:
        """See `CredentialVerifier`: those in force, each text of a key. Blocks."""
        now = self._stored.now()
        keys = self._stored.refresh().keys.values()
        texts = ((key, text) for key in keys for text in key.texts)
        return [_identity(key, expires, hash) for key, (hash, expires) in texts if now < expires]


def _has_text(key: ApiKey, text: KeyText) -> bool:
    """Whether a text is the current one of a key, or the one before its rotation."""
    return any(compare_digest(hash, text.hash) for hash, _ in key.texts)


def _identity(key: ApiKey, expires: datetime, hash: str) -> Identity:
    origin = f"the API key {key.id}"
    return Identity(key.caller, KeyVerifier.name, expires.timestamp(), origin, key.id, reference=hash, entry=key.id)

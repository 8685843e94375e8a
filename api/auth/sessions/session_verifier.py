"""Callers by the cookies of their sessions (ACC-54, ACC-59)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annals.api.auth.credentials import RequestCredential, Scheme
from annals.api.auth.identity import LISTING, CredentialVerifier, Identity
from annals.api.auth.sessions.sessions import Sessions


class SessionVerifier:
    """The sessions of a registry. verifiers: the other authenticators that are on."""

    name: Final = "session"
    schemes = frozenset((Scheme.SESSION,))

    def __init__(self, sessions: Sessions, verifiers: Sequence[CredentialVerifier]) -> None:
        self._sessions = sessions
        self._verifiers = {verifier.name: verifier for verifier in verifiers}

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """See `CredentialVerifier`. A session has the roles that its credential has now."""
        if credential.scheme is not Scheme.SESSION:
            return None
        return await self._sessions.identify(credential.secret, self._list_identities, is_use=credential.is_use)

    def listed(self) -> tuple[Identity, ...]:
        """See `CredentialVerifier`: the authenticators of their credentials list the callers."""
        return ()

    def _list_identities(self, authenticator: str) -> Sequence[Identity] | None:
        """The credentials of an authenticator that are in force; none if it has been switched off.

        None for JWTs, whose sessions end with their token.
        """
        verifier = self._verifiers.get(authenticator)
        if verifier is None:
            return ()
        return verifier.listed() if authenticator in LISTING else None

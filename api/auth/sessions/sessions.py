"""Sessions: what a sign-in begins, and what ends by a limit, a sign-out, or with its credential (ACC-54 to ACC-57).

A session has a random id. Only its cookie has the id; the store has a hash of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from annals.api.auth.caller_entries import parse_group_roles
from annals.api.auth.credentials import EXPIRED, FOREIGN, InvalidCredential
from annals.api.auth.identity import Identity
from annals.api.auth.sessions.provider_tokens import ProviderTokens, seal_tokens, unseal_tokens
from annals.api.auth.sessions.session_settings import SessionSettings
from annals.api.auth.sessions.signatures import signed, verified
from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.secrets import Vault
from annals.domain.access.roles import Caller, Role
from annals.domain.errors.http_errors import ProviderUnavailable
from annals.domain.values.json_text import dumps, loads
from annals.projections.sessions.session_store import SessionRow, SessionStore

#: The name of sign-in at a provider, where other sessions have that of an authenticator.
PROVIDER: Final = "oidc"
#: Seconds between two questions to a provider about one session, and how long a session lasts without an answer.
CHECK_SECONDS: Final = 900
UNCHECKED_SECONDS: Final = 3600
#: Seconds within which a second use of a session is not noted, and the part of the idle limit that this may be.
USE_SECONDS: Final = 60
_USE_PART: Final = 10
#: Random bytes of an id: 256 bits.
_ID_BYTES: Final = 32
_PURPOSE: Final = "session"
_NO_TOKENS: Final = ProviderTokens()
_LOG: Final = logging.getLogger("annals.callers")


class SessionProvider(Protocol):
    """What a session asks about the person who began it.

    reference: identifies the provider; a session of another one has ended.
    """

    @property
    def reference(self) -> str: ...

    async def refresh(self, refresh_token: str) -> tuple[Identity, ProviderTokens]:
        """Who the person is now, and the next tokens.

        Raises: ProviderUnavailable if the provider does not answer; another Exception if it does not say.
        """


class EndedSession(NamedTuple):
    """A session that was there. authenticator: how it began. id_token: of this provider; empty if it has none."""

    authenticator: str
    id_token: str


class Sessions:
    """The sessions of one registry.

    vault: encrypts the tokens of providers. provider: None without one. clock: seconds since 1970.
    """

    def __init__(
        self,
        store: SessionStore,
        settings: SessionSettings,
        vault: Vault,
        provider: SessionProvider | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._settings = settings
        self._vault = vault
        self._provider = provider
        self._clock = clock
        self._use_seconds = min(USE_SECONDS, settings.idle // _USE_PART)
        #: Rows whose tokens could not be stored. A provider may take no older ones any more.
        self._unstored: dict[str, SessionRow] = {}
        self.key = b""

    def open(self) -> None:
        """Makes the sessions usable. Blocks. Raises: one of `driver_errors()`."""
        self.key = self._store.open()

    def close(self) -> None:
        """Closes the connections to the store. Blocks."""
        self._store.close()

    async def begin(self, identity: Identity, tokens: ProviderTokens = _NO_TOKENS, previous: str | None = None) -> str:
        """Begins a session; returns the value of its cookie.

        identity: of the credential, which is not stored. tokens: of the provider. previous: the cookie of a session
        that ends with this sign-in.
        """
        if previous is not None:
            await self.end(previous)
        id, now = secrets.token_urlsafe(_ID_BYTES), int(self._clock())
        hash = _hash(id)
        wrapped, sealed = seal_tokens(self._vault, hash, replace(tokens, confirmed=now))
        ends = now + self._settings.longest
        if identity.authenticator == PROVIDER and not (sealed and tokens.refresh_token):
            ends = min(ends, now + UNCHECKED_SECONDS)
        elif identity.authenticator != PROVIDER and identity.expires is not None:
            ends = min(ends, int(identity.expires))
        kind, reference, name = identity.authenticator or "", _hash(identity.reference), identity.caller.name
        row = SessionRow(hash, kind, reference, name, _identity_text(identity), now, ends, now, wrapped, sealed)
        await asyncio.to_thread(self._store.add, row, now, now - self._settings.idle)
        return signed(self.key, _PURPOSE, id)

    async def end(self, cookie: str) -> EndedSession | None:
        """Ends the session of a cookie, and returns it; None if it has ended before, or with its provider."""
        id = verified(self.key, _PURPOSE, cookie)
        row = await asyncio.to_thread(self._store.find, _hash(id)) if id is not None else None
        if row is None:
            return None
        await asyncio.to_thread(self._store.remove, row.hash)
        if row.authenticator == PROVIDER and self._provider_of(row) is None:
            return None  # no other provider gets its ID token
        tokens = unseal_tokens(self._vault, row.hash, row.wrapped, row.sealed)
        return EndedSession(row.authenticator, tokens.id_token if tokens else "")

    async def use_state(self, state: str, ends: int) -> bool:
        """Whether the `state` of a sign-in at a provider is used for the first time. ends: when it expires."""
        return await asyncio.to_thread(self._store.use_state, _hash(state), ends, int(self._clock()))

    async def identify(
        self,
        cookie: str,
        list_identities: Callable[[str], Sequence[Identity] | None],
        *,
        is_use: bool = True,
    ) -> Identity:
        """Who the session of a cookie belongs to.

        list_identities: returns the credentials in force of an authenticator, by its name; None if it has no list. It
        may block. is_use: whether the idle limit begins again. Raises: InvalidCredential.
        """
        id = verified(self.key, _PURPOSE, cookie)  # without a look-up for what is no cookie of this server
        if id is None:
            raise InvalidCredential("the cookie of the session was not made by this server", FOREIGN)
        row = await asyncio.to_thread(self._store.find, _hash(id))
        now = int(self._clock())
        if row is None or row.ends <= now or row.used + self._settings.idle <= now:
            raise InvalidCredential("the session has ended", EXPIRED)
        current = await self._current_identity(row, now, list_identities)
        if is_use and now - row.used >= self._use_seconds:
            await self._note_use(row.hash, now)
        origin = f"a session that began by {row.authenticator}"
        caller = replace(current.caller, began_by=row.authenticator)
        return Identity(caller, "session", row.ends, origin, current.key, current.claims, entry=current.entry)

    async def _current_identity(
        self, row: SessionRow, now: int, list_identities: Callable[[str], Sequence[Identity] | None]
    ) -> Identity:
        """The caller with the roles of today. Raises: InvalidCredential if the credential is no longer in force."""
        if row.authenticator == PROVIDER:
            if (provider := self._provider_of(row)) is None:
                raise await self._end(row, "the provider of the session is not the one of this server")
            is_due = bool(row.sealed) and now - row.checked >= CHECK_SECONDS
            return await self._check_at_provider(row, now, provider) if is_due else _parse_identity(row)
        identities = await asyncio.to_thread(list_identities, row.authenticator)
        if identities is None:
            return _parse_identity(row)
        name = _parse_identity(row).caller.name
        for identity in identities:
            if identity.caller.name == name and _hash(identity.reference) == row.reference:
                return identity
        raise await self._end(row, "the credential that began the session is no longer in force")

    def _provider_of(self, row: SessionRow) -> SessionProvider | None:
        """The provider of a session; None if it is not the one of this server."""
        provider = self._provider
        return provider if provider is not None and row.reference == _hash(provider.reference) else None

    async def _end(self, row: SessionRow, message: str) -> InvalidCredential:
        """Ends a session; returns the error that says why."""
        self._unstored.pop(row.hash, None)
        await asyncio.to_thread(self._store.remove, row.hash)
        return InvalidCredential(message, EXPIRED)

    async def _check_at_provider(self, row: SessionRow, now: int, provider: SessionProvider) -> Identity:
        """The caller as the provider sees it now. A provider takes each refresh token once, so one request asks.

        Others have the roles of before until it is answered, and all have them for up to an hour if it is not.
        Raises: InvalidCredential; then the session has ended.
        """
        if (unstored := self._unstored.get(row.hash)) is not None:
            row = replace(row, caller=unstored.caller, wrapped=unstored.wrapped, sealed=unstored.sealed)
        known, tokens = _parse_identity(row), unseal_tokens(self._vault, row.hash, row.wrapped, row.sealed)
        if tokens is not None and not tokens.refresh_token:  # it ends within an hour, see `begin`
            return known
        if not await asyncio.to_thread(self._store.claim_check, row, now):
            return known
        try:
            if tokens is None:
                raise ValueError("no master key opens its refresh token")
            identity, next_tokens = await provider.refresh(tokens.refresh_token)
            if identity.caller.name != known.caller.name:
                raise ValueError("the provider names another person")
        except ProviderUnavailable:
            if tokens is not None and now - tokens.confirmed < UNCHECKED_SECONDS:
                return known
            raise await self._end(row, "the provider has not answered for an hour") from None
        except Exception as error:
            raise await self._end(row, f"the provider does not confirm the session: {error}") from None
        wrapped, sealed = seal_tokens(self._vault, row.hash, replace(next_tokens, confirmed=now))
        await self._store_checked(replace(row, caller=_identity_text(identity), wrapped=wrapped, sealed=sealed))
        return identity

    async def _store_checked(self, row: SessionRow) -> None:
        """Stores what a provider has answered, or keeps it here while the database does not accept it."""
        self._unstored[row.hash] = row
        try:
            await asyncio.to_thread(self._store.set_checked, row.hash, row.caller, row.wrapped, row.sealed)
            del self._unstored[row.hash]
        except driver_errors() as error:
            _LOG.warning("the tokens of a session could not be stored: %s", error)

    async def _note_use(self, hash: str, now: int) -> None:
        try:
            await asyncio.to_thread(self._store.set_used, hash, now)
        except driver_errors() as error:  # an import holds the lock; the request itself is good
            _LOG.warning("the use of a session could not be stored: %s", error)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _identity_text(identity: Identity) -> str:
    """What a row keeps of the caller, without the roles of grants."""
    caller = identity.caller
    members = {"name": caller.name, "role": caller.role, "groups": dict(caller.groups), "claims": [*identity.claims]}
    return dumps(members).decode()


def _parse_identity(row: SessionRow) -> Identity:
    members = loads(row.caller.encode())
    assert isinstance(members, dict), "this program has written it"
    role = members["role"]
    caller = Caller(members["name"], None if role is None else Role(role), parse_group_roles(members["groups"]))
    return Identity(caller, row.authenticator, claims=tuple(members["claims"]))

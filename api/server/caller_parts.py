"""Builds what a server knows its callers by, and what it keeps about them, from its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from annals.api.auth.callers import Authenticator, FixedCallerAuthenticator
from annals.api.auth.files.periodic_tasks import PeriodicTasks
from annals.api.auth.identity import CredentialVerifier
from annals.api.auth.jwt_keys import is_url
from annals.api.auth.limits.denials import DenialLog
from annals.api.auth.limits.request_rates import RequestRates
from annals.api.auth.oidc.provider import OidcProvider
from annals.api.auth.sessions.session_verifier import SessionVerifier
from annals.api.auth.sessions.sessions import Sessions
from annals.api.auth.verifiers import build_verifiers
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.settings.settings import Settings
from annals.api.subscriptions.wiring import build_guard_for_url
from annals.commands.store.clock import Clock
from annals.commands.store.secrets import Vault
from annals.domain.access.roles import Caller
from annals.projections.access.denied_writes import DeniedWrites
from annals.projections.access.key_uses import KeyUses
from annals.projections.access.stored_access import StoredAccess
from annals.projections.sessions.session_store import SessionStore


@dataclass(frozen=True)
class CallerParts:
    """How a server knows its callers, and what it keeps about them.

    stored_access: the API keys and grants in the log. denied_writes, key_uses, sessions: None if the settings turn them
    off. provider: that people sign in at, if any.
    """

    authenticator: Authenticator
    stored_access: StoredAccess
    denied_writes: DeniedWrites | None = None
    key_uses: KeyUses | None = None
    sessions: Sessions | None = None
    provider: OidcProvider | None = None

    @property
    def tables(self) -> Sequence[SideTable]:
        """The tables that have to be opened with the store."""
        return [table for table in (self.sessions, self.key_uses, self.denied_writes) if table]


class SideTable(Protocol):
    """Rows that are not in the log."""

    def open(self) -> None: ...
    def close(self) -> None: ...


def build_caller_parts(
    settings: Settings,
    periodic_tasks: PeriodicTasks,
    clock: Clock,
    denials: DenialLog,
    denied_writes: DeniedWrites | None = None,
    caller: Caller | None = None,
) -> CallerParts:
    """What the settings describe, with closed tables.

    periodic_tasks: keep it current. denials: where refusals are counted and logged. denied_writes: the table that it
    writes to, if any. caller: the caller of all requests; None to authenticate callers.

    Raises: ValueError for a list of callers that cannot be parsed.
    """
    stored_access, key_uses = StoredAccess(clock), KeyUses(settings.database) if settings.api_keys else None
    for table in (denied_writes, key_uses):
        if table:
            periodic_tasks.repeat(table.write_due)
    provider = build_provider(settings)
    if caller:
        return CallerParts(FixedCallerAuthenticator(caller), stored_access, denied_writes, key_uses, None, provider)
    sessions = build_sessions(settings, provider) if settings.auth.has_authenticator else None
    verifiers = build_settings_verifiers(settings, periodic_tasks, stored_access, provider)
    if sessions is not None:
        verifiers.append(SessionVerifier(sessions, tuple(verifiers)))
    proxies = TrustedProxies(settings.trusted_proxies)
    rates = RequestRates(settings.auth.reads_per_second, settings.auth.writes_per_second)
    authenticator = Authenticator(verifiers, settings.auth.anonymous, proxies, rates, denials, stored_access, key_uses)
    return CallerParts(authenticator, stored_access, denied_writes, key_uses, sessions, provider)


def build_provider(settings: Settings) -> OidcProvider | None:
    """The provider that people sign in at; None without one."""
    oidc = settings.oidc
    return OidcProvider(oidc, settings.auth.claims, build_guard_for_url(oidc.issuer, settings)) if oidc else None


def build_sessions(settings: Settings, provider: OidcProvider | None) -> Sessions:
    """The sessions of people in browsers, which `open` makes usable. provider: that some of them sign in at."""
    return Sessions(SessionStore(settings.database), settings.auth.sessions, Vault(settings.master_keys), provider)


def build_settings_verifiers(
    settings: Settings, periodic_tasks: PeriodicTasks, stored_access: StoredAccess | None, provider: OidcProvider | None
) -> list[CredentialVerifier]:
    """See `build_verifiers`; keys of JWTs by their URL are fetched as the settings allow."""
    keys = settings.jwt_keys
    resolver = build_guard_for_url(keys, settings) if keys and is_url(keys) else None
    return build_verifiers(settings.auth, periodic_tasks, resolver, stored_access, provider)

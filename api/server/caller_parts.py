"""Builds what a server knows its callers by, and what it keeps about them, from its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from annals.api.auth.build import build_authenticator
from annals.api.auth.callers import Authenticator, FixedCallerAuthenticator
from annals.api.auth.files.periodic_tasks import PeriodicTasks
from annals.api.auth.jwt_keys import is_url
from annals.api.auth.limits.denials import DenialLog
from annals.api.auth.oidc.provider import OidcProvider
from annals.api.auth.sessions.sessions import Sessions
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
    authenticator = build_settings_authenticator(
        settings, periodic_tasks, denials, stored_access, key_uses, sessions, provider
    )
    return CallerParts(authenticator, stored_access, denied_writes, key_uses, sessions, provider)


def build_provider(settings: Settings) -> OidcProvider | None:
    """The provider that people sign in at; None without one."""
    oidc = settings.oidc
    return OidcProvider(oidc, settings.auth.claims, build_guard_for_url(oidc.issuer, settings)) if oidc else None


def build_sessions(settings: Settings, provider: OidcProvider | None) -> Sessions:
    """The sessions of people in browsers, which `open` makes usable. provider: that some of them sign in at."""
    return Sessions(SessionStore(settings.database), settings.auth.sessions, Vault(settings.master_keys), provider)


def build_settings_authenticator(
    settings: Settings,
    periodic_tasks: PeriodicTasks,
    denials: DenialLog | None = None,
    stored_access: StoredAccess | None = None,
    key_uses: KeyUses | None = None,
    sessions: Sessions | None = None,
    provider: OidcProvider | None = None,
) -> Authenticator:
    """The authenticator that the settings describe. periodic_tasks: keeps it current while the server runs.

    denials: where refusals are counted and logged. stored_access: the API keys and grants in the log. key_uses: where
    uses of keys are noted. sessions: those of people in browsers. provider: of the tokens of the command line.

    Raises: ValueError for a list of callers that cannot be parsed.
    """
    keys = settings.jwt_keys
    resolver = build_guard_for_url(keys, settings) if keys and is_url(keys) else None
    proxies = TrustedProxies(settings.trusted_proxies)
    return build_authenticator(
        settings.auth, periodic_tasks, proxies, resolver, denials, stored_access, key_uses, sessions, provider
    )

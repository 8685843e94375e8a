"""Builds the verifiers of the credentials that the settings turn on (ACC-10)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from annals.api.auth import json_settings
from annals.api.auth.auth_settings import AuthSettings
from annals.api.auth.basic import PasswordVerifier, parse_passwords
from annals.api.auth.certificates import CertificateVerifier, parse_clients
from annals.api.auth.files.periodic_tasks import PeriodicTasks
from annals.api.auth.files.watched_files import WatchedFiles
from annals.api.auth.identity import CredentialVerifier
from annals.api.auth.jwt_keys import IssuerKeys
from annals.api.auth.keys import KeyVerifier
from annals.api.auth.oidc.id_token_verifier import IdTokenVerifier
from annals.api.auth.oidc.provider import OidcProvider
from annals.api.auth.tokens import FixedTokens, FixedTokenVerifier, parse_fixed_tokens
from annals.projections.outgoing.resolver import Resolver

if TYPE_CHECKING:
    from annals.projections.access.stored_access import StoredAccess

_LOG: Final = logging.getLogger("annals")


def build_verifiers(
    settings: AuthSettings,
    periodic_tasks: PeriodicTasks,
    resolver: Resolver | None = None,
    access: StoredAccess | None = None,
    provider: OidcProvider | None = None,
) -> list[CredentialVerifier]:
    """The verifiers of all credentials but sessions. periodic_tasks: keeps them current while a server runs.

    resolver: for the URL of the keys of JWTs. access: the API keys and grants in the log; None to know none. provider:
    of ID tokens that the command line sends.

    Raises: ValueError for a list that cannot be parsed.
    """
    verifiers: list[CredentialVerifier] = []
    if settings.tokens:
        verifiers.append(FixedTokenVerifier(_watched_tokens(settings.tokens, periodic_tasks)))
    if settings.api_keys and access is not None:
        verifiers.append(KeyVerifier(access))
    if settings.basic_file:
        passwords = WatchedFiles((settings.basic_file,), partial(parse_passwords, settings.basic_file))
        verifiers.append(PasswordVerifier(periodic_tasks.watch(passwords).current))
    if settings.tls_clients:
        clients = WatchedFiles((settings.tls_clients,), partial(parse_clients, settings.tls_clients))
        verifiers.append(CertificateVerifier(periodic_tasks.watch(clients).current))
    if provider is not None and settings.oidc is not None and settings.oidc.cli_client_id:
        # Before other JWTs, because the same issuer may sign them for another audience.
        verifiers.append(IdTokenVerifier(provider, settings.oidc.cli_client_id))
        periodic_tasks.repeat(provider.refresh_metadata)
    if settings.jwt_keys:
        from annals.api.auth.jwt import JwtVerifier  # with all of cryptography, which most servers do not need

        keys = IssuerKeys(settings.jwt_keys, resolver)
        verifiers.append(JwtVerifier(keys, settings.claims))
        periodic_tasks.repeat(keys.refresh)
        for name in ("issuer", "audience"):
            if getattr(settings.claims, name) is None:
                _LOG.warning("ANNALS_JWT_%s is not set: JWTs for others with the same keys are accepted", name.upper())
    return verifiers


def _watched_tokens(setting: str, periodic_tasks: PeriodicTasks) -> Callable[[], FixedTokens]:
    load = partial(parse_fixed_tokens, setting)
    if json_settings.is_inline_json(setting):
        tokens = load()
        return lambda: tokens
    return periodic_tasks.watch(WatchedFiles((setting,), load)).current

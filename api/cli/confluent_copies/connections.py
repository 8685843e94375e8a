"""Connections of copies: to the other schema registry, and to this one over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from annals.api.cli.confluent_copies.copy_options import CopyOptions
from annals.api.cli.options import bearer_token, load_console_settings
from annals.api.cli.outcome import UsageError
from annals.api.cli.secret_files import read_secret_file
from annals.api.cli.server_tokens import bearer_headers
from annals.api.settings.settings import Settings, check_authorities
from annals.projections.confluent_copy.rest_api import HttpApi
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.outgoing.resolver import ForbiddenAddress

#: The operator names his own server on the command line, and it mostly has a private address.
_ANY_ADDRESS: Final = "0.0.0.0/0,::/0"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@contextmanager
def open_other_registry(url: str, options: CopyOptions, settings: Settings) -> Iterator[HttpApi]:
    """The other registry, at a permitted address (LEG-1108). Raises: UsageError."""
    guard = DestinationGuard(settings.sinks_allow or "", ca_file=_ca_file(options, settings.sinks_ca))
    _check_address(url, guard)
    secret = _read_secret(options.secret_file)
    if options.user is not None:
        if secret is None:
            raise UsageError("--user: the password is missing; set ANNALS_CONFLUENT_SECRET or --secret-file.")
        user, headers = (options.user, secret), dict[str, str]()
    else:
        user, headers = None, bearer_headers(secret)
    with closing(HttpApi(url, guard, headers=headers, user=user)) as api:
        yield api


@contextmanager
def open_own_server(url: str, options: CopyOptions, settings: Settings) -> Iterator[HttpApi]:
    """Confluent's API of a served registry, by the URL of the registry's root, with the token of ANNALS_TOKEN.

    Without one, it is that of `annals auth login`. Raises: UsageError; as `bearer_token`.
    """
    headers = bearer_headers(bearer_token(None, url))
    guard = DestinationGuard(_ANY_ADDRESS, ca_file=_ca_file(options, settings.sinks_ca))
    with closing(HttpApi(f"{url.rstrip('/')}/compat/confluent", guard, headers=headers)) as api:
        yield api


def _ca_file(options: CopyOptions, configured: str | None) -> str:
    """The file of further certificate authorities, empty for none.

    Raises: UsageError for a file without certificates; the settings check their own.
    """
    if options.ca is None:
        return configured or ""
    try:
        check_authorities(str(options.ca))
    except ValueError as error:
        raise UsageError(f"--ca: {error}.") from None
    return str(options.ca)


def _check_address(url: str, guard: DestinationGuard) -> None:
    """Raises: UsageError for a URL that is none, has a password, or leads to an address that is not permitted."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise UsageError(f"{url} is no URL of a schema registry; it begins with http:// or https://.") from None
    if not parts.hostname:
        raise UsageError(f"{url} names no host.")
    if parts.username or parts.password:
        raise UsageError("passwords do not belong into URLs; use --user, and ANNALS_CONFLUENT_SECRET or --secret-file.")
    try:
        asyncio.run(guard.addresses(parts.hostname, port))
    except ForbiddenAddress as refusal:
        raise UsageError(f"{parts.hostname}:{port}: {refusal}.") from None
    except OSError:
        return  # the first request says so


def _read_secret(file: Path | None) -> str | None:
    if file is not None:
        return read_secret_file(file)
    secret = load_console_settings().confluent_secret
    return secret.get_secret_value() if secret is not None else None

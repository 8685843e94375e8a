"""`annals auth`: checks credentials by the settings of the server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from annals.api.cli.options import load_settings, require_store
from annals.api.cli.outcome import InvalidInput, StoreError, UsageError

if TYPE_CHECKING:
    from annals.api.auth.credentials import RequestCredential
    from annals.api.settings.settings import Settings
    from annals.projections.access.stored_access import StoredAccess

auth: Final = typer.Typer(help="Check credentials by the settings of the server.")

SecretFile = Annotated[
    Path | None, typer.Option("--secret-file", help="File with the token or the password; - reads standard input.")
]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Name of the password; default: a token.")]

Certificate = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="PEM file with the certificate of a client.")
]


@auth.callback()
def _root() -> None:
    """So that the one verb has a name."""


@auth.command()
def check(user: User = None, secret_file: SecretFile = None, certificate: Certificate = None) -> None:
    """Print who a request with a credential would be, as JSON, and why; or why it would be refused.

    The command asks for the token or the password, or reads it from a file. It uses the settings of the server, and
    needs no running server.

    Example: ANNALS_TOKENS=tokens.json annals auth check --secret-file token.txt
    """
    from annals.api.app import build_settings_authenticator
    from annals.api.auth.credentials import InvalidCredential
    from annals.api.auth.files.watched_files import Upkeep
    from annals.api.auth.whoami import identity_document

    settings = load_settings()
    authenticator = build_settings_authenticator(settings, Upkeep(), stored_access=_stored_access(settings))
    if not authenticator.names:
        raise UsageError(
            "no authenticator is on, so the server reads no credential: every caller is anonymous, with the role "
            f"{settings.auth.anonymous.role}."
        )
    credential = _certificate(certificate) if certificate is not None else _credential(user, secret_file)
    try:
        identity = asyncio.run(authenticator.verify(credential))
    except InvalidCredential as error:
        asked = ", ".join(authenticator.names)
        raise InvalidInput(f"refused by {error.authenticator or 'all'}: {error} (asked: {asked}).") from None
    document = {**identity_document(identity), "why": f"it is known from {identity.origin}"}
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))


def _stored_access(settings: Settings) -> StoredAccess | None:
    """The API keys and grants in the store; None without a store."""
    from annals.projections.access.stored_access import StoredAccess
    from annals.projections.entities.query import ViewPool

    if not settings.api_keys:
        try:
            require_store(settings)
        except StoreError:
            return None
    access = StoredAccess()
    access.open(ViewPool(require_store(settings).database))
    return access


def _credential(user: str | None, secret_file: Path | None) -> RequestCredential:
    from annals.api.auth.credentials import RequestCredential, Scheme

    secret = read_secret(secret_file, "Token" if user is None else "Password")
    return RequestCredential(Scheme.BEARER, secret) if user is None else RequestCredential(Scheme.BASIC, secret, user)


def _certificate(file: Path) -> RequestCredential:
    import ssl
    from base64 import b64encode

    from annals.api.auth.credentials import RequestCredential, Scheme

    try:
        der = ssl.PEM_cert_to_DER_cert(file.read_text())
    except (OSError, ValueError):
        raise UsageError(f"{file} is not a PEM file with a certificate.") from None
    return RequestCredential(Scheme.CERTIFICATE, b64encode(der).decode())


def read_secret(file: Path | None, prompt: str) -> str:
    """The secret in a file, without white space at its ends; without a file, what the person types."""
    if file is None:
        return str(typer.prompt(prompt, hide_input=True, err=True))
    if str(file) == "-":
        return sys.stdin.read().strip()
    if not file.is_file():
        raise UsageError(f"there is no file {file}.")
    return file.read_text().strip()

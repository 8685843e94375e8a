"""`annals auth`: checks credentials by the settings of the server, and signs the command line in to servers.

It also prints the writes that a server has refused.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from annals.api.cli.options import MAX_INTEGER, Database, load_settings, require_store
from annals.api.cli.outcome import InvalidInput, StoreError, UsageError
from annals.api.cli.secret_files import read_secret_file, read_secret_input
from annals.api.cli.tables import Column, print_json, print_rows, printable_text

if TYPE_CHECKING:
    from annals.api.auth.credentials import RequestCredential
    from annals.api.cli.device_sign_in import DeviceCode
    from annals.api.settings.settings import Settings
    from annals.projections.access.stored_access import StoredAccess

auth: Final = typer.Typer(help="Check credentials by the settings of the server, and sign in to servers.")

_DENIAL_COLUMNS: Final = (Column(27, "dim"), Column(3), Column(20, "bold"), Column(6), *[Column()] * 4)

#: Seconds for the question who the server takes a new token for.
_WHOAMI_SECONDS: Final = 30.0

SecretFile = Annotated[
    Path | None, typer.Option("--secret-file", help="File with the token or the password; - reads standard input.")
]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="Name of the password; default: a token.")]

Certificate = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="PEM file with the certificate of a client.")
]

ServerUrl = Annotated[str, typer.Argument(metavar="URL", help="The URL of the registry's root.")]
Issuer = Annotated[str | None, typer.Option("--issuer", metavar="URL", help="The provider of OpenID Connect.")]
ClientId = Annotated[
    str | None, typer.Option("--client-id", metavar="ID", help="Id of the command line at the provider.")
]


@auth.command()
def check(user: User = None, secret_file: SecretFile = None, certificate: Certificate = None) -> None:
    """Print who a request with a credential would be, as JSON, and why; or why it would be refused.

    With --secret-file the command reads the token or the password from a file, and with --certificate it takes a
    certificate; otherwise it asks for the token or the password. It uses the settings of the server, and needs no
    running server.

    Example: ANNALS_TOKENS=tokens.json annals auth check --secret-file token.txt
    """
    from annals.api.auth.callers import Authenticator
    from annals.api.auth.credentials import InvalidCredential
    from annals.api.auth.files.periodic_tasks import PeriodicTasks
    from annals.api.auth.whoami import identity_document
    from annals.api.server.caller_parts import build_provider, build_settings_verifiers

    settings = load_settings()
    stored_access = _stored_access(settings)
    verifiers = build_settings_verifiers(settings, PeriodicTasks(), stored_access, build_provider(settings))
    authenticator = Authenticator(verifiers, settings.auth.anonymous, access=stored_access)
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


@auth.command()
def login(url: ServerUrl, issuer: Issuer = None, client_id: ClientId = None) -> None:
    """Sign in to a server as yourself: confirm a code at its provider, in any browser.

    The provider and the id of the command line come from the options, or from ANNALS_OIDC_ISSUER and
    ANNALS_OIDC_CLI_CLIENT_ID; the server has the same settings. Verbs that read or write a server by its URL then send
    the token to this server, unless they have another one. The token stays in a file that only you can read.

    Example: annals auth login https://registry.example.com --issuer https://login.example.com --client-id annals-cli
    """
    from annals.api.cli.device_sign_in import sign_in_by_device
    from annals.api.cli.sign_ins import changing_sign_ins, read_sign_ins

    settings = load_settings(oidc_issuer=issuer, oidc_cli_client_id=client_id)
    origin = _safe_origin(url)
    for option, name in (("--issuer", "oidc_issuer"), ("--client-id", "oidc_cli_client_id")):
        if not getattr(settings, name):
            raise UsageError(f"{option} is missing; or set ANNALS_{name.upper()}.")
    assert settings.oidc_issuer is not None and settings.oidc_cli_client_id is not None, "checked above"
    read_sign_ins()  # a file that cannot be used is better reported before the sign-in
    sign_in = sign_in_by_device(settings.oidc_issuer, settings.oidc_cli_client_id, settings.oidc_scopes, _show_code)
    name = _signed_in_name(url, sign_in.id_token)
    with changing_sign_ins() as sign_ins:
        sign_ins[origin] = sign_in
    typer.echo(printable_text(f"signed in to {origin} as {name}"))


@auth.command()
def logout(url: ServerUrl) -> None:
    """Forget the sign-in to a server. The tokens are removed from this machine.

    Example: annals auth logout https://registry.example.com
    """
    from annals.api.cli.sign_ins import changing_sign_ins, origin_of

    origin = origin_of(url) or url
    with changing_sign_ins() as sign_ins:
        if sign_ins.pop(origin, None) is None:
            raise InvalidInput(f"there is no sign-in to {origin}.")
    typer.echo(f"signed out of {origin}")


@auth.command()
def denials(
    limit: Annotated[int, typer.Option("--limit", min=1, max=MAX_INTEGER, help="The maximum number of denials.")] = 100,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line, as the HTTP API does.")
    ] = False,
    database: Database = None,
) -> None:
    """Print the last refused writes: time, status, reason, method, path, address, caller, id of the API key.

    Servers keep as many as ANNALS_DENIALS_KEPT says, which are none by default. The newest are first.

    Example: annals auth denials --limit 20
    """
    from annals.api.access.denial_routes import denial_document
    from annals.domain.values.json_text import dumps
    from annals.projections.access.denied_writes import DeniedWrites

    with closing(DeniedWrites(require_store(load_settings(database=database)).database)) as denied_writes:
        denied_writes.open()
        found = denied_writes.read(limit)
    if as_json:
        for each in found:
            print_json(dumps(denial_document(*each)))
        return
    print_rows(
        _DENIAL_COLUMNS,
        (
            (row.time, row.status, row.reason, row.method, row.path, row.address, row.caller, row.keyid)
            for _, row in found
        ),
    )


def _safe_origin(url: str) -> str:
    """The origin of a server that a token may be sent to. Raises: UsageError."""
    from annals.api.auth.jwt_keys import is_url
    from annals.api.cli.sign_ins import origin_of

    origin = origin_of(url)
    try:
        if origin is not None and is_url(url):
            return origin
    except ValueError:
        pass
    raise UsageError(f"{url}: an https URL is needed, or an http URL of this machine, because tokens are sent there.")


def _show_code(code: DeviceCode) -> None:
    lines = (f"Open {code.complete_url}", f"and confirm the code {code.user_code}, or type it at {code.url}")
    for line in lines:
        typer.echo(printable_text(line), err=True)


def _signed_in_name(url: str, token: str) -> str:
    """Whom a server takes the token for.

    Raises: InvalidInput if it refuses the token; StoreError if it does not answer, or not as a registry.
    """
    import httpx

    try:
        headers = {"authorization": f"Bearer {token}"}
        answer = httpx.get(f"{url.rstrip('/')}/-/whoami", headers=headers, timeout=_WHOAMI_SECONDS)
        is_refused = answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        name = None if is_refused else answer.json()["name"]
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise StoreError(f"{url} does not answer: {error}.") from None
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{url} answers {answer.status_code}, and not as a registry; check the URL.") from None
    if name is None:
        raise InvalidInput(
            f"{url} refuses the token of the provider with {answer.status_code}; its ANNALS_OIDC_ISSUER and "
            "ANNALS_OIDC_CLI_CLIENT_ID have to be the same as here."
        )
    return str(name)


def _stored_access(settings: Settings) -> StoredAccess | None:
    """The API keys and grants in the store; None without a store."""
    from annals.projections.access.stored_access import StoredAccess
    from annals.projections.entities.view_pool import ViewPool

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
    """The secret in a file, without white space at its ends; without a file, what the person types.

    Raises: UsageError.
    """
    if file is None:
        return str(typer.prompt(prompt, hide_input=True, err=True))
    if str(file) == "-":
        return read_secret_input()
    return read_secret_file(file)

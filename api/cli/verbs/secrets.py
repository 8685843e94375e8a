"""`annals secrets`: manages the encrypted secrets as a whole."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Final

import typer

from annals.api.cli.options import Database, load_settings, require_store
from annals.api.cli.outcome import StoreError, UsageError

if TYPE_CHECKING:
    from annals.commands.store.secrets import Vault

secrets: Final = typer.Typer(help="Manage the encrypted secrets of the registry.")


@secrets.callback()
def _root() -> None:
    """So that the one verb has a name."""


@secrets.command()
def rotate(database: Database = None) -> None:
    """Encrypt the keys of all secrets with the newest master key.

    List the new key before the old one in ANNALS_MASTER_KEY, and restart the server with this list first. After the
    rotation, you can remove the old key. The secrets and the log do not change. The tokens of a
    provider that sessions of browsers keep are secrets too.

    Example: ANNALS_MASTER_KEY=$NEW,$OLD annals secrets rotate
    """
    from annals.commands.store.log import Store
    from annals.commands.store.secrets import NoMasterKey, Vault

    settings = require_store(load_settings(database=database))
    vault = Vault(settings.master_keys)
    if not vault.has_key:
        raise UsageError("there is no master key; set ANNALS_MASTER_KEY or ANNALS_MASTER_KEY_FILE.")
    with closing(Store(settings.database, vault=vault)) as store:
        store.create()
        try:
            with store.writing() as transaction:
                count = vault.rewrap(transaction.connection)
        except NoMasterKey as error:
            raise StoreError(f"{error}; is an older key missing from the list?") from None
    sessions = _rewrap_sessions(settings.database, vault)
    typer.echo(f"{count} secrets are under the newest master key")
    if sessions:
        typer.echo(f"{sessions} sessions are under the newest master key")


def _rewrap_sessions(database: str, vault: Vault) -> int:
    """How many sessions have their tokens under the newest master key. One that no key opens ends at its next check."""
    from annals.api.auth.sessions.provider_tokens import token_secret
    from annals.projections.sessions.session_store import SessionStore

    with closing(SessionStore(database)) as store:
        store.open()
        return store.rewrap(lambda hash, wrapped: vault.rewrap_key(token_secret(hash), wrapped))

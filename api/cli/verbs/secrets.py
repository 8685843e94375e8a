"""`annals secrets`: manages the encrypted secrets as a whole."""

from __future__ import annotations

from contextlib import closing
from typing import Final

import typer

from annals.api.cli.options import Database, load_settings, require_store
from annals.api.cli.outcome import StoreError, UsageError

secrets: Final = typer.Typer(help="Manage the encrypted secrets of the registry.")


@secrets.callback()
def _root() -> None:
    """So that the one verb has a name."""


@secrets.command()
def rotate(database: Database = None) -> None:
    """Encrypt the keys of all secrets with the newest master key.

    List the new key before the old one in ANNALS_MASTER_KEY, and restart the server with this list first. After the
    rotation, you can remove the old key. The secrets and the log do not change.

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
    typer.echo(f"{count} secrets are under the newest master key")

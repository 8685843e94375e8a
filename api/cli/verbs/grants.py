"""`annals grants`: manages roles of callers directly in the store, as an administrator.

A running server notices a change within a second.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from annals.api.cli.options import Database, load_settings, require_id, require_store
from annals.api.cli.tables import Column, print_json, print_rows
from annals.domain.access.grants import COLLECTION
from annals.domain.values.json_text import dumps

if TYPE_CHECKING:
    from annals.api.cli.surface_client import SurfaceClient

grants: Final = typer.Typer(help="Give roles to callers.")

Id = Annotated[str, typer.Argument(metavar="ID", callback=require_id, help="The id of a grant.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, as the HTTP API does.")]

#: The arguments and options that give the members of a document.
_OPTIONS: Final = {
    "subject": "SUBJECT",
    "role": "ROLE",
    "at": "PLACE",
    "id": "--id",
    "expires": "--expires",
    "note": "--note",
}
_COLUMNS: Final = (Column(12, "bold"), Column(24), Column(7), Column(24), Column(20, "dim"), Column())


def _open_client(database: str | None) -> AbstractContextManager[SurfaceClient]:
    from annals.api.cli.access_client import open_grant_client  # late, because the help does not need the registry

    return open_grant_client(require_store(load_settings(database=database)))


def _options_named() -> AbstractContextManager[None]:
    from annals.api.cli.document_options import options_named

    return options_named(_OPTIONS)


@grants.command()
def add(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="caller:NAME, claim:WORD, or anyone.")],
    role: Annotated[str, typer.Argument(metavar="ROLE", help="reader, writer or admin.")],
    at: Annotated[str, typer.Argument(metavar="PLACE", help="The xid of a Group, a pattern, or / for all.")] = "/",
    id: Annotated[str | None, typer.Option("--id", help="Its id; default: a random one.")] = None,
    expires: Annotated[str | None, typer.Option("--expires", metavar="TIME", help="Default: never.")] = None,
    note: Annotated[str | None, typer.Option("--note", help="Why it is given.")] = None,
    database: Database = None,
) -> None:
    """Give a role to a caller, and print the id of the grant.

    Example: annals grants add claim:payments writer "/schemagroups/pay-*"
    """
    document = {"id": id, "subject": subject, "role": role, "at": at, "expires": expires, "note": note}
    with _open_client(database) as client, _options_named():
        created = client.request(
            "POST", COLLECTION, body={name: value for name, value in document.items() if value is not None}
        )
    typer.echo(created["id"])


@grants.command(name="list")
def list_(as_json: AsJson = False, database: Database = None) -> None:
    """Print all grants: id, subject, role, place, expiry, note."""
    with _open_client(database) as client:
        found = list(client.members(COLLECTION))
    if as_json:
        for grant in found:
            print_json(dumps(grant))
        return
    print_rows(
        _COLUMNS,
        (
            (one["id"], one["subject"], one["role"], one["at"], one.get("expires", "never ends"), one.get("note", ""))
            for one in found
        ),
    )


@grants.command()
def remove(id: Id, database: Database = None) -> None:
    """Withdraw a grant."""
    with _open_client(database) as client:
        client.request("DELETE", COLLECTION, id)

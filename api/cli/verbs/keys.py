"""`annals keys`: manages API keys directly in the store, as an administrator.

A running server notices a change within a second.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from annals.api.cli.options import MAX_SECONDS, Database, load_settings, require_id, require_store
from annals.api.cli.outcome import UsageError
from annals.api.cli.tables import Column, print_json, print_rows
from annals.domain.access.keys import COLLECTION
from annals.domain.values.json_text import dumps

if TYPE_CHECKING:
    from annals.api.cli.surface_client import SurfaceClient

keys: Final = typer.Typer(help="Manage API keys.")

Id = Annotated[str, typer.Argument(metavar="ID", callback=require_id, help="The id of a key.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, as the HTTP API does.")]

#: The options and the argument that give the members of a document.
_OPTIONS: Final = {
    "name": "NAME",
    "role": "--role",
    "groups": "--group",
    "expires": "--expires",
    "description": "--description",
    "grace": "--grace",
}
_COLUMNS: Final = (Column(12, "bold"), Column(16), Column(20, "dim"), Column(20, "dim"), Column())


def _open_client(database: str | None) -> AbstractContextManager[SurfaceClient]:
    from annals.api.cli.access_client import open_key_client  # late, because the help does not need the registry

    return open_key_client(require_store(load_settings(database=database)))


def _options_named() -> AbstractContextManager[None]:
    from annals.api.cli.document_options import options_named

    return options_named(_OPTIONS)


@keys.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its caller is `key:` and this name.")],
    role: Annotated[str | None, typer.Option("--role", help="reader, writer or admin in the whole registry.")] = None,
    groups: Annotated[
        list[str] | None, typer.Option("--group", metavar="PLACE=ROLE", help="A role in a Group, or in a pattern.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="At most 366 days from now; default: in 90 days.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="What it is for.")] = None,
    database: Database = None,
) -> None:
    """Create a key, and print it. Nothing shows it again; the registry keeps only its hash.

    Example: annals keys add ci --group /schemagroups/pay-*=writer
    """
    if role is None and not groups:
        raise UsageError("a key needs a role: --role for the whole registry, or --group for a Group.")
    document = {
        "name": name,
        "role": role,
        "groups": dict(map(_parse_role, groups or ())) or None,
        "expires": expires,
        "description": description,
    }
    with _open_client(database) as client, _options_named():
        key = client.request(
            "POST", COLLECTION, body={name: value for name, value in document.items() if value is not None}
        )
    typer.echo(key["key"])


@keys.command(name="list")
def list_(as_json: AsJson = False, database: Database = None) -> None:
    """Print all keys: id, name, expiry, last use, roles."""
    with _open_client(database) as client:
        found = list(client.members(COLLECTION))
    if as_json:
        for key in found:
            print_json(dumps(key))
        return
    print_rows(_COLUMNS, map(_row, found))


@keys.command()
def rotate(
    id: Id,
    grace: Annotated[
        int,
        typer.Option(
            "--grace", max=MAX_SECONDS, metavar="SECONDS", help="For how long the key before works, at most 604800."
        ),
    ] = 0,
    database: Database = None,
) -> None:
    """Give a key a new text, and print it.

    Example: annals keys rotate k7m2q9w4x8yz --grace 3600
    """
    with _open_client(database) as client, _options_named():
        typer.echo(client.request("POST", COLLECTION, id, "actions", "rotate", body={"grace": grace})["key"])


@keys.command()
def revoke(id: Id, database: Database = None) -> None:
    """End a key. It works no more within a second."""
    with _open_client(database) as client:
        client.request("DELETE", COLLECTION, id)


def _parse_role(text: str) -> tuple[str, str]:
    place, equals, role = text.rpartition("=")
    if not equals:
        raise UsageError(f'"{text}" has no role; write it as /schemagroups/pay-*=writer.')
    return place, role


def _row(key: dict[str, Any]) -> tuple[str, ...]:
    roles = [*([key["role"]] if "role" in key else []), *(f"{place}={role}" for place, role in _groups(key))]
    last_used = key.get("lastused", {}).get("time", "never used")
    return key["id"], key["name"], key["expires"], last_used, " ".join(roles)


def _groups(key: dict[str, Any]) -> Any:
    return key.get("groups", {}).items()

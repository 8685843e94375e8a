"""`annals subscriptions`: manages subscriptions directly in the store, as an administrator.

A server of the store follows its log, so a pause or a replay recorded here reaches the deliverer of that server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from annals.api.cli.options import (
    MAX_INTEGER,
    Database,
    PublicUrl,
    load_settings,
    require_id,
    require_ids,
    require_store,
)
from annals.api.cli.outcome import UsageError
from annals.api.cli.tables import Column, print_json, print_rows, printable_text
from annals.domain.access.roles import ANONYMOUS, CONSOLE, Caller, Role
from annals.domain.values.json_text import dumps

if TYPE_CHECKING:
    from annals.api.cli.surface_client import SurfaceClient
    from annals.api.settings.settings import Settings

subscriptions: Final = typer.Typer(help="Manage subscriptions and their deliveries.")

Id = Annotated[str, typer.Argument(metavar="ID", callback=require_id, help="The id of a subscription.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, as the HTTP API does.")]

State = Literal[
    "active",
    "paused",
    "retrying",
    "pendingvalidation",
    "unauthorized",
    "credentialexpired",
    "gone",
    "suspended",
]

_COLLECTION: Final = "/subscriptions"
#: The options that give the members of a replay.
_REPLAY_OPTIONS: Final = {
    "fromposition": "--from",
    "fromtime": "--from",
    "toposition": "--to",
    "parallel": "--parallel",
}
_STATE_STYLES: Final = {
    "active": "green",
    **dict.fromkeys(("paused", "retrying", "pendingvalidation"), "yellow"),
    **dict.fromkeys(("unauthorized", "credentialexpired", "gone", "suspended"), "red"),
}
_LIST_COLUMNS: Final = (
    Column(36, "bold"),
    Column(17, _STATE_STYLES),
    Column(8),
    Column(7),
    Column(7),
    Column(style="cyan"),
)
_DEAD_LETTER_COLUMNS: Final = (
    Column(23, "bold"),
    Column(24, "dim"),
    Column(),
    Column(style="red"),
    Column(),
    Column(style="cyan"),
)


@contextmanager
def _open_client(database: str | None, public_url: str | None = None) -> Iterator[tuple[SurfaceClient, Settings]]:
    # Late, because help and wrong usage do not need the registry.
    from annals.api.cli.open_registry import open_local_registry
    from annals.api.cli.surface_client import SurfaceClient
    from annals.api.subscriptions.routes import SubscriptionsRoutes
    from annals.api.subscriptions.wiring import build_subscription_context, open_deliveries

    settings = require_store(load_settings(database=database, public_url=public_url))
    with open_local_registry(settings) as registry, open_deliveries(settings) as deliveries:
        yield (
            SurfaceClient(SubscriptionsRoutes(build_subscription_context(settings, registry, deliveries=deliveries))),
            settings,
        )


@subscriptions.command(name="list")
def list_(
    state: Annotated[State | None, typer.Option("--state", help="Only subscriptions in this state.")] = None,
    as_json: AsJson = False,
    database: Database = None,
) -> None:
    """Print all subscriptions: id, state, protocol, pending events, dead letters and sink.

    Example: annals subscriptions list --state suspended
    """
    with _open_client(database) as (client, _):
        subscription_documents = client.request("GET", _COLLECTION, query={"state": state} if state else None)
    if as_json:
        _print_lines(subscription_documents)
        return
    print_rows(_LIST_COLUMNS, map(_subscription_row, subscription_documents))


@subscriptions.command()
def show(id: Id, database: Database = None) -> None:
    """Print one subscription with the status of its deliveries, as JSON. Secrets are not shown."""
    with _open_client(database) as (client, _):
        print_json(dumps(client.request("GET", _COLLECTION, id)))


@subscriptions.command()
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The subscription as JSON; - reads standard input.")],
    owner: Annotated[str | None, typer.Option("--owner", help="Name of the caller that owns the subscription.")] = None,
    database: Database = None,
    public_url: PublicUrl = None,
) -> None:
    """Create a subscription from a JSON document, and print its id.

    The default owner is the console, or all callers if the registry does not distinguish callers.

    Example: annals subscriptions create subscription.json --owner ann
    """
    with _open_client(database, public_url) as (client, settings):
        default_owner = CONSOLE.name if settings.auth.has_authenticator else ANONYMOUS.name
        subscription = client.request(
            "POST", _COLLECTION, body=_read_content(file), caller=Caller(owner or default_owner, Role.ADMIN)
        )
    typer.echo(subscription["id"])


@subscriptions.command()
def delete(id: Id, database: Database = None) -> None:
    """Delete a subscription and destroy its secrets. Events that are not delivered yet will not be delivered."""
    with _open_client(database) as (client, _):
        client.request("DELETE", _COLLECTION, id)
    typer.echo(f"{printable_text(id)} is deleted")


@subscriptions.command()
def pause(id: Id, database: Database = None) -> None:
    """Pause deliveries until `resume`. No event is lost."""
    _run_action(id, "pause", {}, database)


@subscriptions.command()
def resume(id: Id, database: Database = None) -> None:
    """Continue deliveries that were paused, or that stopped by themselves."""
    _run_action(id, "resume", {}, database)


@subscriptions.command()
def replay(
    id: Id,
    start: Annotated[str, typer.Option("--from", help="Start: a position of the log, or a time.")],
    end: Annotated[
        int | None, typer.Option("--to", min=1, max=MAX_INTEGER, help="Last position; default: now.")
    ] = None,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Parallel to live deliveries instead of before them.")
    ] = False,
    database: Database = None,
) -> None:
    """Send past events again, with their original ids, if they match the current filters.

    Example: annals subscriptions replay 0c9f... --from 2026-01-31T00:00:00Z
    """
    _run_action(id, "replay", {**_start_member(start), "toposition": end, "parallel": parallel}, database)


def _start_member(start: str) -> dict[str, Any]:
    """The member of a replay for its start. Raises: BadParameter if it is too large for a position."""
    if not (start.isascii() and start.isdecimal()):
        return {"fromtime": start}
    if len(start) > len(str(MAX_INTEGER)) or int(start) > MAX_INTEGER:
        raise typer.BadParameter(f"a position is at most {MAX_INTEGER}.", param_hint="'--from'")
    return {"fromposition": int(start)}


@subscriptions.command()
def deadletters(id: Id, as_json: AsJson = False, database: Database = None) -> None:
    """Print undeliverable events: sequence, time of the last attempt, attempts, reason, type and subject."""
    with _open_client(database) as (client, _):
        dead_letters, query = list[Any](), {"limit": "1000"}
        while page := client.request("GET", _COLLECTION, id, "deadletters", query=query):
            dead_letters += page
            query["after"] = page[-1]["sequence"]
    if as_json:
        _print_lines(dead_letters)
        return
    print_rows(_DEAD_LETTER_COLUMNS, map(_dead_letter_row, dead_letters))


@subscriptions.command()
def redeliver(
    id: Id,
    sequences: Annotated[
        list[str],
        typer.Argument(metavar="SEQUENCE...", callback=require_ids, help="Sequences from `deadletters`."),
    ],
    database: Database = None,
) -> None:
    """Retry dead letters, with a new set of attempts."""
    with _open_client(database) as (client, _):
        for sequence in sequences:
            client.request("POST", _COLLECTION, id, "deadletters", sequence, "redeliver")
            typer.echo(f"{printable_text(sequence)} is tried again")


def _run_action(id: str, name: str, body: dict[str, Any], database: str | None) -> None:
    from annals.api.cli.document_options import options_named

    with _open_client(database) as (client, _), options_named(_REPLAY_OPTIONS):
        status = client.request("POST", _COLLECTION, id, "actions", name, body=body)
    typer.echo(status["state"])


def _read_content(file: Path) -> bytes:
    if str(file) == "-":
        return sys.stdin.buffer.read()
    if not file.is_file():
        raise UsageError(f"there is no file {file}.")
    return file.read_bytes()


def _subscription_row(subscription: dict[str, Any]) -> tuple[object, ...]:
    status = subscription["status"]
    return (
        *(subscription["id"], status["state"], subscription["protocol"]),
        *(status.get("pending", ""), status.get("deadletters", ""), subscription["sink"]),
    )


def _dead_letter_row(dead_letter: dict[str, Any]) -> tuple[object, ...]:
    event = dead_letter.get("event", {})
    return (
        *(dead_letter["sequence"], dead_letter.get("lastattempt"), dead_letter.get("attempts")),
        *(
            " ".join(filter(None, (dead_letter.get("reason"), dead_letter.get("code")))),
            event.get("type"),
            event.get("subject"),
        ),
    )


def _print_lines(documents: list[Any]) -> None:
    for document in documents:
        sys.stdout.write(dumps(document).decode() + "\n")

"""`annals replicate`: manages replication links directly in the store, as an administrator.

A server of the store reads its links about once a second, so changes made here reach the running links.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from annals.api.cli.options import (
    MAX_SECONDS,
    Database,
    load_console_settings,
    load_settings,
    require_id,
    require_store,
)
from annals.api.cli.outcome import InvalidInput, UsageError
from annals.api.cli.secret_files import read_secret_file, read_secret_input
from annals.api.cli.tables import Column, print_json, print_rows, printable_text
from annals.domain.replication.link import COLLECTION
from annals.domain.values.json_text import InvalidJson, dumps, loads

if TYPE_CHECKING:
    from annals.api.cli.surface_client import SurfaceClient

replicate: Final = typer.Typer(help="Copy from and to other registries.")

Id = Annotated[str, typer.Argument(metavar="ID", callback=require_id, help="The id of a link.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, as the HTTP API does.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]

#: The arguments and options that give the members of a document, and of the objects in it.
_OPTIONS: Final = {
    "id": "ID",
    "url": "URL",
    "dialect": "--dialect",
    "mode": "--mode",
    "scope": "--group",
    "scope/groups": "--group",
    "scope/resources": "--resource",
    "scope/filters": "--filter",
    "names": "--name",
    "interval": "--interval",
    "conflicts": "--conflicts",
    "remote": "--remote",
    "credential": "the secret",
    "credential/username": "--username",
}
_STATE_STYLES: Final = {
    "active": "green",
    **dict.fromkeys(("resting", "failing"), "yellow"),
    "diverged": "red",
    "promoted": "dim",
}
_VERDICT_STYLES: Final = {"equal": "green", "differs": "red"}
_LIST_COLUMNS: Final = (Column(24, "bold"), Column(9, _STATE_STYLES), Column(14), Column(7), Column(style="cyan"))
_STATUS_COLUMNS: Final = (
    *(
        Column(24, "bold"),
        Column(9, _STATE_STYLES),
        Column(7),
        Column(8),
        Column(20, "dim"),
        Column(9, _VERDICT_STYLES),
    ),
    *(Column(4), Column(style="red")),
)


def _open_client(database: str | None) -> AbstractContextManager[SurfaceClient]:
    from annals.api.cli.link_requests import open_link_client  # late, because the help does not need the registry

    return open_link_client(require_store(load_settings(database=database)))


def _options_named() -> AbstractContextManager[None]:
    from annals.api.cli.document_options import options_named

    return options_named(_OPTIONS)


@replicate.command()
def add(
    id: Id,
    url: Annotated[str, typer.Argument(metavar="URL", help="Root of the other registry, or of its legacy API.")],
    dialect: Annotated[str | None, typer.Option("--dialect", help="Protocol of the other side; default: log.")] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="pull, events, push or receive; default: pull.")] = None,
    groups: Annotated[list[str] | None, typer.Option("--group", help="The xid of a Group; default: all.")] = None,
    resources: Annotated[list[str] | None, typer.Option("--resource", help="A Resource's xid.")] = None,
    filters: Annotated[list[str] | None, typer.Option("--filter", help="A filter of Groups, as JSON.")] = None,
    names: Annotated[list[str] | None, typer.Option("--name", metavar="THERE=HERE", help="Renames a Group.")] = None,
    interval: Annotated[
        float | None, typer.Option("--interval", max=MAX_SECONDS, help="Seconds between polls and checks.")
    ] = None,
    conflicts: Annotated[str | None, typer.Option("--conflicts", help="rename or skip.")] = None,
    remote: Annotated[str | None, typer.Option("--remote", help="Id of the link on the other side of a push.")] = None,
    username: Annotated[str | None, typer.Option("--username", help="User of the password; default: a token.")] = None,
    secret_file: Annotated[
        Path | None, typer.Option("--secret-file", help="File with the token or the password; - reads standard input.")
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask for the secret, if neither a file nor a setting has it.")
    ] = False,
    database: Database = None,
) -> None:
    """Create a link, and print its id. A running server finds the link in the store.

    The token or the password for the other registry is read from the file of --secret-file, else from
    ANNALS_LINK_SECRET. Without both, --ask and --username make the command ask for it.

    Example: annals replicate add primary https://registry.example.com --secret-file token.txt
    """
    scope = {
        "groups": groups,
        "resources": resources,
        "filters": [_parse_filter(filter_text) for filter_text in filters or ()],
    }
    link_document = {
        "id": id,
        "url": url,
        "dialect": dialect,
        "mode": mode,
        "scope": {name: value for name, value in scope.items() if value},
        "names": dict(map(_parse_pair, names or ())),
        "interval": interval,
        "conflicts": conflicts,
        "remote": remote,
        "credential": _read_credential(username, secret_file, ask),
    }
    with _open_client(database) as client, _options_named():
        link = client.request(
            "POST", COLLECTION, body={name: value for name, value in link_document.items() if value is not None}
        )
    typer.echo(link["id"])


@replicate.command(name="list")
def list_(as_json: AsJson = False, database: Database = None) -> None:
    """Print all links: id, state, dialect, mode and URL."""
    with _open_client(database) as client:
        links = list(client.members(COLLECTION))
    if as_json:
        _print_lines(links)
        return
    print_rows(
        _LIST_COLUMNS,
        ((link["id"], link["status"]["state"], link["dialect"], link["mode"], link["url"]) for link in links),
    )


@replicate.command()
def show(id: Id, database: Database = None) -> None:
    """Print one link with its status, as JSON. Secrets are not shown."""
    with _open_client(database) as client:
        print_json(dumps(client.request("GET", COLLECTION, id)))


@replicate.command()
def status(
    id: Annotated[str | None, typer.Argument(metavar="ID", callback=require_id, help="One link; default: all.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with the other registry first.")] = False,
    as_json: AsJson = False,
    database: Database = None,
) -> None:
    """Print the status of links: id, state, positions and seconds behind, last contact, verdict, conflicts, last error.

    The verdict is `equal` if both sides are equal up to the copied position, `differs` with the first entity that
    differs, or `unknown` if they cannot be compared. With --check, the exit code is 1 unless each link that follows a
    log has the verdict `equal`; promoted links do not count.

    Example: annals replicate status primary --check
    """
    from annals.api.cli.link_check import LinkCheck, check_link

    with _open_client(database) as client:
        link_ids = [id] if id is not None else [item["id"] for item in client.members(COLLECTION)]
        link_checks = [
            check_link(client, item) if check else LinkCheck(client.request("GET", COLLECTION, item), None)
            for item in link_ids
        ]
    link_documents = [link_check.link for link_check in link_checks]
    if as_json:
        _print_lines([{"id": item["id"], **item["status"]} for item in link_documents])
    else:
        print_rows(_STATUS_COLUMNS, map(_status_row, link_documents))
    if failures := [link_check.failure for link_check in link_checks if link_check.failure]:
        raise InvalidInput(f"{', '.join(failures)}.")


@replicate.command()
def pause(id: Id, database: Database = None) -> None:
    """Pause a link until `resume`: nothing is copied, and its copies stay read-only."""
    _run_action(id, "pause", database)


@replicate.command()
def resume(id: Id, database: Database = None) -> None:
    """Continue with a paused link."""
    _run_action(id, "resume", database)


@replicate.command()
def promote(id: Id, yes: Yes = False, database: Database = None) -> None:
    """Make the copies of a link this registry's own: the link copies nothing more, and all writers may write them.

    The command asks first if the link has never reached the other registry, because then there are no copies.

    Example: annals replicate promote primary
    """
    with _open_client(database) as client:
        status = client.request("GET", COLLECTION, id)["status"]
        if "lastcontact" not in status and not status["position"] and status["state"] != "promoted":
            _confirm(yes, "The link has never reached the other registry, and has copied nothing. Promote it?")
        link = client.request("POST", COLLECTION, id, "actions", "promote")
    typer.echo(link["status"]["state"])


@replicate.command()
def repair(id: Id, yes: Yes = False, database: Database = None) -> None:
    """Make this registry equal to the other one, within the scope of a link, and continue from there.

    One interaction replaces entities that differ, and deletes entities that exist only here. The log keeps the earlier
    states.

    Example: annals replicate repair primary --yes
    """
    with _open_client(database) as client:
        client.request("GET", COLLECTION, id)  # a link that is not there needs no answer
        _confirm(yes, "Changes that were made here only will be undone. Repair it?")
        count = client.request("POST", COLLECTION, id, "actions", "repair")["repaired"]
    typer.echo(f"{count} entities differed and are as they are there" if count else "nothing differed")


@replicate.command()
def remove(id: Id, yes: Yes = False, database: Database = None) -> None:
    """Delete a link and destroy its secret. Its copies stay, and become writable."""
    with _open_client(database) as client:
        client.request("GET", COLLECTION, id)
        _confirm(yes, "What came over it stays and becomes writable. Remove the link?")
        client.request("DELETE", COLLECTION, id)
    typer.echo(f"{printable_text(id)} is removed; what came over it is writable")


def _run_action(id: str, name: str, database: str | None) -> None:
    with _open_client(database) as client:
        link = client.request("POST", COLLECTION, id, "actions", name)
    typer.echo(link["status"]["state"])


def _confirm(is_confirmed: bool, question: str) -> None:
    """Asks, unless --yes is the answer. Raises: InvalidInput without a yes."""
    if is_confirmed:
        return
    try:
        is_confirmed = typer.confirm(question, err=True)
    except typer.Abort:
        raise InvalidInput("stopped, because the question had no answer; --yes answers it.") from None
    if not is_confirmed:
        raise InvalidInput("stopped; nothing has changed.")


def _parse_filter(text: str) -> Any:
    try:
        return loads(text.encode())
    except InvalidJson:
        raise UsageError(
            f'{text} is not a filter; an example is {{"prefix": {{"subject": "/schemagroups/team-"}}}}.'
        ) from None


def _parse_pair(text: str) -> tuple[str, str]:
    remote_name, separator, local_name = text.partition("=")
    if not separator:
        raise UsageError(f"{text} does not name two Groups; an example is /schemagroups/there=/schemagroups/here.")
    return remote_name, local_name


def _read_credential(username: str | None, file: Path | None, ask: bool) -> dict[str, str] | None:
    """The credential for the other registry; None if it needs none."""
    secret = _read_secret(file, ask or username is not None)
    if username is not None:
        return {"type": "basic", "username": username, "password": secret or ""}
    return {"type": "bearer", "token": secret} if secret else None


def _read_secret(file: Path | None, ask: bool) -> str | None:
    if file is not None and str(file) == "-":
        return read_secret_input()
    if file is not None:
        return read_secret_file(file)
    if (configured_secret := load_console_settings().link_secret) is not None:
        return configured_secret.get_secret_value()
    return str(typer.prompt("Token or password", hide_input=True, err=True)) if ask else None


def _status_row(link: Mapping[str, Any]) -> tuple[object, ...]:
    status = link["status"]
    lag = status.get("lag", {})
    verdict = status.get("verdict", "")
    if difference := status.get("difference"):
        verdict = f"{verdict} {difference['xid']}"
    return (
        *(link["id"], status["state"], lag.get("positions"), lag.get("seconds"), _time_text(status.get("lastcontact"))),
        *(verdict, status.get("conflictscount", len(status.get("conflicts", ()))), status.get("error")),
    )


def _time_text(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _print_lines(documents: Sequence[Any]) -> None:
    for document in documents:
        sys.stdout.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")

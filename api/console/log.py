"""`annals log`: what is written in the log, read as it lies there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, Any, Final

import typer

from api.console.options import Database, existing, settings_with
from api.console.outcome import Refused, StoreFault
from api.console.progress import bar
from commands.log import Store
from commands.verify import verify as walk
from commands.verify import verify_rows
from domain.events import EntityEvent
from domain.jsontext import dumps

log: Final = typer.Typer(no_args_is_help=True, help="Look at the log: every change, in order, for ever.")

Lines = Annotated[int, typer.Option("--lines", "-n", min=0, help="How many events to begin with.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events until Ctrl-C.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line, with all that the event holds.")]

_BATCH: Final = 500
_PAUSE: Final = 0.3


@log.command()
def tail(lines: Lines = 20, follow: Follow = False, as_json: AsJson = False, database: Database = None) -> None:
    """Print the last events: position, time, kind, xid, epoch and correlation id, separated by tabs.

    Events with the same correlation id are one interaction: what one request did.
    """
    with closing(reading(database)) as store:
        after = max(0, store.tip().position - lines)
        for position, event in events(store, after, follow):
            typer.echo(_json(position, event) if as_json else _line(position, event))


@log.command()
def show(
    position: Annotated[int, typer.Argument(min=1, help="Position of the event, as `annals log tail` prints it.")],
    database: Database = None,
) -> None:
    """Print one event with the state in which it left its entity, as JSON."""
    with closing(reading(database)) as store:
        found = store.events(position - 1, 1)
        if not found:
            raise Refused(f"the log has no position {position}; it ends at {store.tip().position}.")
        typer.echo(_json(*found[0]))


@log.command()
def verify(database: Database = None) -> None:
    """Walk the whole log and prove it: positions, revisions, hash chain, state hash, documents and the read model.

    Prints each finding with its position. Exit code 0 means that nothing was found, 3 that the store is damaged.
    """
    with closing(reading(database)) as store:
        with bar("Verifying") as report:
            findings = [*walk(store, progress=report), *verify_rows(store)]
        for finding in findings:
            typer.echo(f"position {finding.position}: {finding.what}")
        tip = store.tip()
    if findings:
        raise StoreFault(f"{len(findings)} findings in {tip.position} events; restore the store from a backup.")
    typer.echo(f"{tip.position} events, no findings. chain {tip.chain.hex()} state {tip.state.hex()}")


def reading(database: str | None) -> Store:
    """The store that the settings name, for looking only."""
    settings = existing(settings_with(database=database))
    return Store(settings.database)


def events(store: Store, after: int, follow: bool) -> Iterator[tuple[int, EntityEvent]]:
    """Events beyond a position; `follow` waits for new ones for ever."""
    while True:
        batch = store.events(after, _BATCH)
        yield from batch
        if batch:
            after = batch[-1][0]
        elif follow:
            time.sleep(_PAUSE)
        else:
            return


def _kind(event: EntityEvent) -> str:
    return event.TOPIC.partition(":")[0]


def _line(position: int, event: EntityEvent) -> str:
    at = event.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return "\t".join((str(position), at, _kind(event), event.xid, str(event.epoch), event.xregcorrelationid))


def _json(position: int, event: EntityEvent) -> str:
    members: dict[str, Any] = {"position": position, "kind": _kind(event), **event.model_dump(exclude_none=True)}
    members["time"] = event.time.isoformat().replace("+00:00", "Z")
    return dumps(members).decode()

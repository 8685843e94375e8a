"""`annals log`: shows and verifies the log as stored."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from annals.api.cli.lazy_verbs import Verb, lazy_group
from annals.api.cli.options import MAX_INTEGER, Database, load_settings, require_store
from annals.api.cli.outcome import InvalidInput, StoreError, findings_text
from annals.api.cli.tables import CHANGE_STYLES, Column, print_json, print_rows

if TYPE_CHECKING:
    from annals.commands.store.log import Store
    from annals.domain.registry.events import EntityEvent

_VERBS: Final = {
    "history": Verb(
        "log_history:history",
        "Print every revision of an entity: position, time, action, xid, epoch, caller, correlation id, what changed.",
    ),
    "interaction": Verb(
        "log_history:interaction",
        "Print everything that one request did: caller, command, time, and the events that it recorded.",
    ),
    "diff": Verb(
        "log_history:diff",
        "Print the differences between two moments: change, entity, attribute, value before and after, as JSON.",
    ),
    "hash": Verb(
        "log_hash:hash_",
        "Print the hash of an entity or collection with everything below it, the number of entities, and the position.",
    ),
    "tail": Verb(
        "log:tail", "Print the last events: position, time, kind, xid, epoch and correlation id, separated by tabs."
    ),
    "show": Verb("log:show", "Print one event with the state of its entity after the event, as JSON."),
    "verify": Verb(
        "log:verify",
        "Verify the whole log: positions, revisions, hash chain, state hash, documents, read model and past.",
    ),
    "archive": Verb(
        "log_archive:archive",
        "Move the old part of the log to segments in a folder or an object store; without options, print the archive.",
    ),
    "unarchive": Verb(
        "log_archive:unarchive",
        "Move everything in the archive back into the database, and forget the archive. Its files stay.",
    ),
}

log: Final = typer.Typer(cls=lazy_group(_VERBS), help="Read and verify the log, which has every change in order.")

Lines = Annotated[int, typer.Option("--lines", "-n", min=0, max=MAX_INTEGER, help="Number of last events to print.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Continue with new events until Ctrl-C.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, with the complete event.")]

_BATCH_SIZE: Final = 500
_POLL_SECONDS: Final = 0.3
_EVENT_COLUMNS: Final = (
    *(Column(7, "cyan"), Column(24, "dim"), Column(15, CHANGE_STYLES), Column(style="bold"), Column()),
    Column(style="dim"),
)
_FINDING_COLUMNS: Final = (Column(style="red"),)
_ARCHIVE_REMEDY: Final = (
    "make the archive readable; if its files are at another place now, record that with annals log archive --moved-to"
)
_DAMAGED_REMEDY: Final = "restore the store from a backup"
_STALE_REMEDY: Final = "the log is intact: rebuild the read model with annals rebuild"


def tail(lines: Lines = 20, follow: Follow = False, as_json: AsJson = False, database: Database = None) -> None:
    """Print the last events: position, time, kind, xid, epoch and correlation id, separated by tabs.

    Events with the same correlation id belong to one interaction: the changes of one request.

    Example: annals log tail -n 100 --follow
    """
    with closing(open_store(database)) as store:
        try:
            after = max(0, store.log_end().position - lines)
            for position, event in tail_events(store, after, follow):
                if as_json:
                    typer.echo(_event_json(position, event))
                else:
                    print_rows(_EVENT_COLUMNS, [_event_row(position, event)])
        except KeyboardInterrupt:
            if not follow:  # with it, Ctrl-C is the end of the verb
                raise


def show(
    position: Annotated[
        int,
        typer.Argument(
            metavar="POSITION", min=1, max=MAX_INTEGER, help="Position of the event, as `annals log tail` prints it."
        ),
    ],
    database: Database = None,
) -> None:
    """Print one event with the state of its entity after the event, as JSON.

    Example: annals log show 42
    """
    with closing(open_store(database)) as store:
        events = store.events(position - 1, 1)
        if not events:
            raise InvalidInput(f"the log has no position {position}; it ends at {store.log_end().position}.")
        print_json(_event_json(*events[0]).encode())


def verify(database: Database = None) -> None:
    """Verify the whole log: positions, revisions, hash chain, state hash, documents, read model and past.

    Prints each finding with its position. Exit code 0 means no findings, 3 means that the store is damaged.

    Example: annals log verify --database sqlite:///backup.db
    """
    # Late, because only this verb needs them.
    from annals.api.cli.progress import work_progress
    from annals.commands.verify.archived_states import ArchivedStates
    from annals.commands.verify.verify_log import verify_log, verify_row_hashes
    from annals.projections.entities.verify.verify_history import verify_history
    from annals.projections.entities.verify.verify_index import verify_index
    from annals.projections.entities.verify.verify_tables import verify_tables

    with closing(open_store(database)) as store:
        with work_progress() as work, ArchivedStates(store, work.step("read from the archive", "events")) as archived:
            log_findings = [*verify_log(store, work.step("verified", "events"), archived)]
            read_model_findings = [*verify_tables(store)] or [
                *verify_row_hashes(store),
                *verify_history(store, work.step("verified", "rows"), archived),
                *verify_index(store, work.step("verified", "values")),
            ]
        findings = [*log_findings, *read_model_findings]
        print_rows(_FINDING_COLUMNS, ((f"position {finding.position}: {finding.text}",) for finding in findings))
        if findings:
            remedy = _remedy(len(archived.failures), len(log_findings))
            raise StoreError(f"{findings_text(len(findings))}; {remedy}.")
        log_end = store.log_end()
    typer.echo(f"{log_end.position} events, no findings. chain {log_end.chain.hex()} state {log_end.state.hex()}")


def _remedy(unreadable_segments: int, log_findings: int) -> str:
    """What to do about findings. log_findings: the number of those in the log, with one for each unreadable segment."""
    if not log_findings:
        return _STALE_REMEDY
    if log_findings == unreadable_segments:  # what they have is unknown, and the rest of the log is intact
        return _ARCHIVE_REMEDY
    return f"{_ARCHIVE_REMEDY}; then verify again" if unreadable_segments else _DAMAGED_REMEDY


def open_store(database: str | None) -> Store:
    """The store of the settings, for reading only. Raises: UnusableSchema if this program cannot read it."""
    from annals.commands.store.log import Store

    settings = require_store(load_settings(database=database))
    store = Store(settings.database)
    try:
        store.require_readable()
    except BaseException:
        store.close()
        raise
    return store


def tail_events(store: Store, after: int, follow: bool) -> Iterator[tuple[int, EntityEvent]]:
    """Events after a position. With `follow`, it waits for new events forever."""
    while True:
        batch = store.events(after, _BATCH_SIZE)
        yield from batch
        if batch:
            after = batch[-1][0]
        elif follow:
            time.sleep(_POLL_SECONDS)
        else:
            return


def _event_kind(event: EntityEvent) -> str:
    return event.TOPIC.partition(":")[0]


def _event_row(position: int, event: EntityEvent) -> tuple[object, ...]:
    timestamp = event.time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return position, timestamp, _event_kind(event), event.xid, event.epoch, event.xregcorrelationid


def _event_json(position: int, event: EntityEvent) -> str:
    from annals.domain.values.json_text import dumps

    members: dict[str, Any] = {"position": position, "kind": _event_kind(event), **event.model_dump(exclude_none=True)}
    members["time"] = event.time.isoformat().replace("+00:00", "Z")
    return dumps(members).decode()

"""`annals log history`, `interaction` and `diff`: the audit trail, read directly from the store."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from annals.api.audit import queries
from annals.api.audit.formats import ListWrapper, TableFormat, TableLayout, write_table
from annals.api.audit.representations import DIFFERENCE_TABLE, action_name, interaction_members, revision_table
from annals.api.audit.request_params import AuditParams, parse_audit_params
from annals.api.cli.options import MAX_INTEGER, Database, require_moment
from annals.api.cli.outcome import InvalidInput
from annals.api.cli.tables import CHANGE_STYLES, Column, print_rows
from annals.api.cli.verbs.log import open_store
from annals.commands.store.log import Store
from annals.projections.audit.entity_diff import EntityDiff
from annals.projections.audit.trail import Revision
from annals.projections.entities.view import View

PathArgument = Annotated[
    str, typer.Argument(metavar="PATH", help="The xid of an entity or collection; / is the registry.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, as the HTTP API does.")]
Below = Annotated[bool, typer.Option("--below/--alone", help="With everything below the entity, or without.")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, max=MAX_INTEGER, help="Maximum number of lines.")]
Newest = Annotated[bool, typer.Option("--newest-first", "-r", help="Print the newest one first.")]
Start = Annotated[
    str,
    typer.Option(
        "--from", callback=require_moment, help="The moment to start from: a position, a time or a correlation id."
    ),
]
After = Annotated[str | None, typer.Option("--from", callback=require_moment, help="Only changes after a moment.")]
Until = Annotated[str | None, typer.Option("--until", callback=require_moment, help="Only changes up to a moment.")]
End = Annotated[
    str | None, typer.Option("--to", callback=require_moment, help="The moment to compare with; default: now.")
]

_REVISION_COLUMNS: Final = (
    *(
        Column(7, "cyan"),
        Column(27, "dim"),
        Column(9, CHANGE_STYLES),
        Column(style="bold"),
        Column(),
        Column(style="magenta"),
    ),
    *(Column(style="dim"), Column(), Column(style="magenta")),
)
_DIFFERENCE_COLUMNS: Final = (
    Column(8, CHANGE_STYLES),
    Column(style="bold"),
    Column(style="cyan"),
    Column(),
    Column(style="dim"),
)
_HEADING_COLUMNS: Final = (Column(17, "cyan"), Column())


def history(
    path: PathArgument = "/",
    below: Below = False,
    after: After = None,
    until: Until = None,
    limit: Limit = None,
    newest_first: Newest = False,
    as_json: AsJson = False,
    database: Database = None,
) -> None:
    """Print every revision of an entity: position, time, action, xid, epoch, caller, correlation id, what changed.

    Last come the authenticator of the caller and the id of its API key, as far as there are any. A deleted entity keeps
    its history. If it is created again, the history continues. Moments are positions, times or correlation ids.

    Example: annals log history /schemagroups/weather --below --from 2026-01-31T00:00:00Z
    """
    audit_params = _audit_params(
        below=_switch_text(below), order="desc" if newest_first else "asc", until=until, **{"from": after}
    )
    with open_view(database) as (view, store):
        positions = queries.history_positions(view, parse_path_argument(path), audit_params, store.clock())
        revisions = view.trail.revisions(_limit_positions(positions, limit), before=as_json)
        _print_revisions(revisions, as_json)


def interaction(
    xregcorrelationid: Annotated[str, typer.Argument(metavar="ID", help="A correlation id, in any case.")],
    as_json: AsJson = False,
    database: Database = None,
) -> None:
    """Print everything that one request did: caller, command, time, and the events that it recorded.

    The answer to a write has the id in the header xRegistry-xregcorrelationid; `annals log tail` prints it last.

    Example: annals log interaction 01kd3yh5rz9m4t7c2x8v6b1nqw
    """
    with open_view(database) as (view, _):
        interaction_events = queries.find_interaction(
            view, xregcorrelationid, AuditParams(images=("before", "after") if as_json else ())
        )
        if interaction_events is None:
            raise InvalidInput(f"no interaction has the id {xregcorrelationid}.")
        interaction_record, events = interaction_events
        if as_json:
            _print_table(
                TableFormat.JSON,
                revision_table(("before", "after")),
                events,
                ListWrapper(interaction_members(interaction_record), "events"),
            )
            return
        print_rows(_HEADING_COLUMNS, interaction_members(interaction_record).items())
        _print_revisions(events, as_json)


def diff(
    start: Start,
    path: PathArgument = "/",
    end: End = None,
    below: Below = True,
    as_json: AsJson = False,
    database: Database = None,
) -> None:
    """Print the differences between two moments: change, entity, attribute, value before and after, as JSON.

    Missing values are empty. Documents are compared by their SHA-256. A Version that is a schema of Confluent's API has
    its subject, version and id there. Moments are positions, times or correlation ids.

    Example: annals log diff /schemagroups/weather --from 2026-01-31T00:00:00Z --to 2026-02-01T00:00:00Z
    """
    audit_params = _audit_params(below=_switch_text(below), to=end, **{"from": start})
    with open_view(database) as (view, store):
        differences = queries.compare_moments(view, parse_path_argument(path), audit_params, store.clock()).differences
        if as_json:
            _print_table(TableFormat.NDJSON, DIFFERENCE_TABLE, differences)
        else:
            print_rows(_DIFFERENCE_COLUMNS, (row for difference in differences for row in _difference_rows(difference)))


@contextmanager
def open_view(database: str | None) -> Iterator[tuple[View, Store]]:
    """A view of one moment of the store in the settings."""
    with closing(open_store(database)) as store:
        engine = store.engine
        if engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        with engine.begin() as connection:
            yield View.of_connection(connection), store


def _audit_params(**parameters: str | None) -> AuditParams:
    """The parameters as a request would give them. Raises: BadRequest."""
    given_parameters = {name: value for name, value in parameters.items() if value is not None}
    return parse_audit_params(urlencode(given_parameters).encode(), given_parameters.keys())


def _switch_text(flag: bool) -> str:
    return "true" if flag else "false"


def parse_path_argument(path: str) -> str:
    """The xid of a path, which may begin and end with a slash and end with `$details`."""
    plain_path = path.removesuffix("$details").strip("/")
    return queries.xid_of(plain_path.split("/") if plain_path else ())


def _limit_positions(positions: Iterator[int], limit: int | None) -> Iterator[int]:
    return (position for position, _ in zip(positions, range(limit), strict=False)) if limit else positions


def _print_revisions(revisions: Iterable[Revision], as_json: bool) -> None:
    if as_json:
        _print_table(TableFormat.NDJSON, revision_table(("before", "after")), revisions)
    else:
        print_rows(_REVISION_COLUMNS, map(_revision_row, revisions))


def _revision_row(revision: Revision) -> tuple[object, ...]:
    event, interaction_record = revision.event, revision.interaction
    return (
        *(
            revision.position,
            interaction_record.time,
            action_name(event),
            event.xid,
            event.epoch,
            interaction_record.caller,
        ),
        *(interaction_record.xregcorrelationid, " ".join(event.changed)),
        " ".join(interaction_record.credential.values()),
    )


def _difference_rows(difference: EntityDiff) -> Iterator[tuple[object, ...]]:
    for row in DIFFERENCE_TABLE.rows(difference):
        path = {"attribute": row["path"], "document": "(document)"}.get(row["of"], f"(schema {row['path']})")
        yield row["change"], row["xid"], path, row.get("before"), row.get("after")


def _print_table(
    format: TableFormat, table: TableLayout[Any], items: Iterable[Any], wrapper: ListWrapper | None = None
) -> None:
    for chunk in write_table(format, table, items, wrapper):
        sys.stdout.write(chunk.decode())
    if format is TableFormat.JSON:
        sys.stdout.write("\n")

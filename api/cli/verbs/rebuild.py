"""`annals rebuild`: rebuilds the read model from the log."""

from __future__ import annotations

import re
from contextlib import closing
from functools import partial
from typing import Annotated, Final, Literal

import typer

from annals.api.cli.options import MAX_INTEGER, Database, load_console_settings, load_settings
from annals.api.cli.outcome import StoreError, UsageError
from annals.api.cli.progress import work_progress
from annals.api.cli.spark_session import EventsOutput, LogAnchors, LogLocation, SourceKind, rebuild_rows
from annals.api.cli.verbs.log import open_store
from annals.api.settings.settings import Settings
from annals.commands.documents.document_checker import CheckLimits, DocumentChecker
from annals.commands.store.log import Store
from annals.projections.database.drivers import database_of
from annals.projections.database.state_database import StateDatabase
from annals.projections.entities.rebuild import PrecomputedRows, RebuildDiverged, RebuildReport
from annals.projections.entities.rebuild import rebuild as rebuild_read_model
from annals.projections.entities.view_pool import ViewPool
from annals.projections.log.reader import Log
from annals.projections.search import tables as search_tables
from annals.projections.search.index_writer import IndexWriter

Engine = Annotated[Literal["process", "spark"], typer.Option("--engine", help="What computes the rows.")]
From = Annotated[SourceKind, typer.Option("--from", help="Where Spark reads the log.")]
AsOf = Annotated[
    int | None,
    typer.Option("--as-of", min=0, max=MAX_INTEGER, help="Last position that Spark computes; the rest follows."),
]
Folder = Annotated[
    str | None, typer.Option("--folder", envvar="ANNALS_SEGMENTS", metavar="URI", help="Folder of the segments.")
]
Brokers = Annotated[str | None, typer.Option("--kafka", metavar="HOST:PORT,...", help="Brokers of the log's topic.")]
Prefix = Annotated[str, typer.Option("--prefix", help="Prefix of the topic name.")]
Stage = Annotated[
    str | None,
    typer.Option("--stage", metavar="URI", help="A new folder that Spark's workers and this machine can reach."),
]

EventsFolder = Annotated[
    str | None,
    typer.Option("--events", metavar="URI", help="A new folder for the xRegistry events of Spark's part, as Parquet."),
]
Head = Annotated[
    str | None,
    typer.Option("--head", metavar="POSITION:HASH", help="A chain hash stored earlier; Spark's log must contain it."),
]

#: The options that only Spark uses, by the names of their parameters.
_SPARK_OPTIONS: Final = {
    "source": "--from",
    "asof": "--as-of",
    "folder": "--folder",
    "brokers": "--kafka",
    "prefix": "--prefix",
    "stage": "--stage",
    "events": "--events",
    "head": "--head",
}
#: The step that applies events of the log to the new tables.
_APPLIED: Final = ("applied", "events")
_HEAD_OPTION: Final = re.compile(r"([0-9]{1,18}):([0-9a-fA-F]{64})")


def rebuild(
    context: typer.Context,
    engine: Engine = "process",
    source: From = "postgres",
    asof: AsOf = None,
    folder: Folder = None,
    brokers: Brokers = None,
    prefix: Prefix = "annals",
    stage: Stage = None,
    events: EventsFolder = None,
    head: Head = None,
    database: Database = None,
) -> None:
    """Rebuild the read model from the log, and the search index, while the registry is in use.

    The old read model stays in use until the new one is complete. An interrupted rebuild does not change it. Spark
    proves the chain hashes of its log before it computes any row; exit code 3 means that they do not match.

    Example: annals rebuild --engine spark --from segments --folder s3://lake/annals --stage s3://lake/stage
    """
    if engine == "process" and (options := _given_spark_options(context)):
        raise UsageError(f"{', '.join(options)}: needs --engine spark; without it, the log of the database is read.")
    expected_head = _parse_head(head) if head is not None else None
    with closing(open_store(database)) as store:
        settings = load_settings(database=database)
        try:
            if engine == "process":
                with work_progress() as work:
                    result = rebuild_read_model(store, work.step(*_APPLIED), max_leaves=settings.indexed_leaves)
            else:
                location = LogLocation(
                    source, settings.database, folder or load_console_settings().segments, brokers, prefix
                )
                events_output = EventsOutput(events, settings.event_changes) if events else None
                anchors = LogAnchors(partial(_chain_at, store), expected_head)
                result = _rebuild_with_spark(
                    store, location, asof, stage, events_output, settings.indexed_leaves, anchors
                )
        except RebuildDiverged as error:
            raise StoreError(
                f"{error}; the read model stays as it was. `annals log verify` says what is wrong."
            ) from error
        _rebuild_search(store, settings)
    rate = result.events / result.seconds if result.seconds else 0
    typer.echo(f"{result.events} events in {result.seconds:.1f} s, {rate:.0f} a second")


def _given_spark_options(context: typer.Context) -> list[str]:
    """The options for Spark on the command line. ANNALS_SEGMENTS in the environment is also for other verbs."""
    sources = {name: context.get_parameter_source(name) for name in _SPARK_OPTIONS}
    return [_SPARK_OPTIONS[name] for name, source in sources.items() if source and source.name == "COMMANDLINE"]


def _rebuild_search(store: Store, settings: Settings) -> None:
    """Writes the search index again, from the read model."""
    limits = CheckLimits(settings.check_workers, settings.check_seconds, settings.check_memory << 20)
    with store.writing() as transaction:
        search_tables.create(transaction.connection)
    with closing(ViewPool(settings.database)) as readers, closing(StateDatabase(settings.database)) as writing_store:
        checker = DocumentChecker(limits)
        try:
            with work_progress() as work:
                writer = IndexWriter(readers, writing_store, checker.check)
                writer.write_all(work.step("indexed", "entities"))
                while writer.catch_up():
                    pass
        finally:
            checker.stop()


def _parse_head(head: str) -> tuple[int, str]:
    """Position and chain hash of the option. Raises: UsageError."""
    if (match := _HEAD_OPTION.fullmatch(head)) is None:
        raise UsageError("--head is POSITION:HASH, as in 42:9c41…, with a chain hash of 64 hex digits.")
    return int(match[1]), match[2].lower()


def _chain_at(store: Store, position: int) -> str | None:
    """The chain hash of the store's log at a position; None if no interaction ends there."""
    with store.engine.connect() as connection:
        interactions = Log(database_of(connection)).interactions(position - 1, 1)
    return interactions[0].chain.hex() if interactions and interactions[0].last == position else None


def _rebuild_with_spark(
    store: Store,
    location: LogLocation,
    asof: int | None,
    stage_folder: str | None,
    events: EventsOutput | None,
    max_leaves: int,
    anchors: LogAnchors,
) -> RebuildReport:
    with work_progress() as work:

        def replace_rows(rows: PrecomputedRows) -> RebuildReport:
            return rebuild_read_model(store, work.step(*_APPLIED), rows, max_leaves)

        report_tasks = work.step("computed", "Spark tasks")
        return rebuild_rows(
            location,
            replace_rows,
            asof,
            stage_folder,
            events,
            max_leaves,
            anchors,
            report_tasks,
            work.step("loaded", "rows"),
        )

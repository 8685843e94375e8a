"""`annals spark`: queries the log of a registry in SQL."""

from __future__ import annotations

import code
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from annals.api.cli.options import bearer_token, load_console_settings, load_settings
from annals.api.cli.progress import ReportProgress, work_progress
from annals.api.cli.spark_session import LogLocation, open_session, parse_location, read_log, stream_log
from annals.api.cli.stop_signals import stop_event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

spark: Final = typer.Typer(
    help="Query the whole log of a registry in SQL. docs/guides/spark/analysts.md describes the tables.\n\n"
    "Settings of Spark come from the environment (ANNALS_SPARK_...) and from .env.",
)

Query = Annotated[str, typer.Argument(metavar="QUERY", help="A query in Spark SQL.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help="Source of the log: the URL of a registry or of its PostgreSQL database, or a folder of segments. "
        "[default: the database of the settings]",
    ),
]
Token = Annotated[str | None, typer.Option(envvar="ANNALS_TOKEN", help="A bearer token for the registry.")]
Rows = Annotated[int, typer.Option(min=1, help="Maximum number of rows of a table.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, all rows; omits null.")]

LiveSource = Annotated[
    Literal["annals", "kafka", "segments"], typer.Option("--from", help="Kind of the source of the log.")
]
To = Annotated[str, typer.Option("--to", metavar="URI", help="The folder of the tables.")]
Checkpoint = Annotated[str, typer.Option("--checkpoint", metavar="URI", help="Folder of the progress of this stream.")]
Registry = Annotated[str | None, typer.Option("--registry", metavar="URL", help="The registry of --from annals.")]
Brokers = Annotated[str | None, typer.Option("--kafka", metavar="HOST:PORT,...", help="Brokers of --from kafka.")]
Folder = Annotated[
    str | None, typer.Option("--folder", envvar="ANNALS_SEGMENTS", metavar="URI", help="The folder of --from segments.")
]
Prefix = Annotated[str, typer.Option("--prefix", help="Prefix of the topic name.")]
Once = Annotated[bool, typer.Option("--once", help="Stop at the end of the log instead of following it.")]
Seconds = Annotated[float, typer.Option("--seconds", min=0, help="Seconds between two polls of the log.")]

_BANNER: Final = "spark is the session, log the log, and spark.sql(...) knows: {}"


@spark.command()
def sql(query: Query, source: Source = None, token: Token = None, rows: Rows = 100, as_json: AsJson = False) -> None:
    """Print the result of one query.

    Example: annals spark sql "SELECT type, count(*) FROM entities GROUP BY type" --from http://127.0.0.1:8080
    """
    with _open_spark(source, token) as (session, _):
        result = session.sql(query)
        if not as_json:
            result.show(rows, truncate=False)
            return
        for line in result.toJSON().toLocalIterator():
            typer.echo(line)


@spark.command()
def shell(source: Source = None, token: Token = None) -> None:
    """Start a Python prompt with a session that has the tables.

    Example: annals spark shell --from /var/lib/annals/segments
    """
    with _open_spark(source, token) as (session, log_rows):
        from annals.spark_projections.analysis import TABLES

        code.interact(_BANNER.format(", ".join(TABLES)), local={"spark": session, "log": log_rows}, exitmsg="")


@spark.command()
def live(
    source: LiveSource,
    to: To,
    checkpoint: Checkpoint,
    registry: Registry = None,
    token: Token = None,
    brokers: Brokers = None,
    prefix: Prefix = "annals",
    folder: Folder = None,
    once: Once = False,
    seconds: Seconds = 10,
) -> None:
    """Update the tables `entities` and `changes` in a folder while the log grows, until Ctrl-C or SIGTERM.

    After any interruption, the command continues where it stopped. Readers see complete positions of the log.

    Example: annals spark live --from kafka --kafka 127.0.0.1:9092 --to s3a://lake/live --checkpoint s3a://lake/place
    """
    load_settings()  # they say how log lines look
    location = LogLocation(
        source,
        folder=folder or load_console_settings().segments,
        brokers=brokers,
        prefix=prefix,
        registry=registry,
        token=bearer_token(token),
    )
    with open_session(location) as session, stop_event() as stop:
        from annals.spark_projections import live as tables

        log_stream = stream_log(session, location)
        query = tables.follow(
            log_stream,
            to,
            checkpoint,
            whole_interactions_only=source == "annals",
            until_caught_up=once,
            seconds=seconds,
        )
        with work_progress() as work:
            _await_stream(query, stop, work.step("applied", "events"))
        typer.echo(f"position {tables.position(session, to)}")


def _await_stream(query: StreamingQuery, stop: Event, report: ReportProgress) -> None:
    """Returns when the stream has ended; reports the number of events in its micro-batches."""
    rows_by_batch: dict[int, int] = {}
    while not query.awaitTermination(1):
        before = sum(rows_by_batch.values())
        rows_by_batch.update((batch["batchId"], batch["numInputRows"]) for batch in query.recentProgress)
        if (rows := sum(rows_by_batch.values())) != before:
            report(rows, 0)
        if stop.is_set():
            query.stop()


@contextmanager
def _open_spark(source: str | None, token: str | None) -> Iterator[tuple[SparkSession, DataFrame]]:
    """A session with the tables, and the log from which they are made."""
    settings = load_settings()
    location = parse_location(source or settings.database, bearer_token(token))
    with open_session(location) as session:
        from annals.spark_projections import analysis
        from annals.spark_projections.analysis import deliveries

        # Cached, because otherwise each table would read the whole log from the registry again.
        log_rows = read_log(session, location).cache() if location.source == "annals" else read_log(session, location)
        analysis.register(session, log_rows, settings.event_changes)
        if location.source == "postgres":
            deliveries.register(session, location.database)
        yield session, log_rows

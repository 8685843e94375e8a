"""`annals spark`: queries the log of a registry in SQL."""

from __future__ import annotations

import code
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from annals.api.cli.options import MAX_COUNT, bearer_token, load_settings
from annals.api.cli.spark_session import open_session, parse_location, read_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
Rows = Annotated[int, typer.Option(min=1, max=MAX_COUNT, help="Maximum number of rows of a table.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line, all rows; omits null.")]

_TIME_FORMAT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
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
        for line in _json_lines(result):
            typer.echo(line)


@spark.command()
def shell(source: Source = None, token: Token = None) -> None:
    """Start a Python prompt with a session that has the tables.

    Example: annals spark shell --from /var/lib/annals/segments
    """
    with _open_spark(source, token) as (session, log_rows):
        from annals.spark_projections.analysis import TABLES

        code.interact(_BANNER.format(", ".join(TABLES)), local={"spark": session, "log": log_rows}, exitmsg="")


def _json_lines(result: DataFrame) -> Iterator[str]:
    """Each row as JSON. Times have the microseconds that tell one interaction from another; `toJSON` cuts them."""
    from pyspark.sql import functions as f

    options = {"timestampFormat": f"{_TIME_FORMAT}XXX", "timestampNTZFormat": _TIME_FORMAT}
    rows = result.select(f.to_json(f.struct("*"), options))
    return (row[0] for row in rows.toLocalIterator())


@contextmanager
def _open_spark(source: str | None, token: str | None) -> Iterator[tuple[SparkSession, DataFrame]]:
    """A session with the tables, and the log from which they are made."""
    settings = load_settings()
    location = parse_location(source or settings.database, bearer_token(token, source))
    with open_session(location) as session:
        from annals.spark_projections import analysis
        from annals.spark_projections.analysis import deliveries

        # Cached, because otherwise each table would read the whole log from the registry again.
        log_rows = read_log(session, location).cache() if location.source == "annals" else read_log(session, location)
        analysis.register(session, log_rows, settings.event_changes)
        if location.source == "postgres":
            deliveries.register(session, location.database)
        yield session, log_rows

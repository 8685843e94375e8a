"""`annals spark`: questions to the past of a registry, in SQL."""

from __future__ import annotations

import code
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final

import typer

from api.console.options import settings_with
from api.console.outcome import Misused, Refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

spark: Final = typer.Typer(
    no_args_is_help=True,
    help="Ask the whole log of a registry in SQL; docs/analysts.md has the tables, and questions with answers.\n\n"
    "Settings of Spark come from the environment (ANNALS_SPARK_...) and from .env.",
)

Query = Annotated[str, typer.Argument(metavar="QUERY", help="A query in Spark's SQL.")]
Source = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="SOURCE",
        help="Where the log is: the URL of a registry, of its PostgreSQL database, or a folder of segments. "
        "[default: the database of the settings]",
    ),
]
Token = Annotated[str | None, typer.Option(envvar="ANNALS_TOKEN", help="A bearer token for the registry.")]
Rows = Annotated[int, typer.Option(min=1, help="Rows that a table shows at most.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line, all rows; null is left out.")]

#: As Python's traces end.
_OURS: Final = re.compile(r"^(?:spark_projections|projections|commands)\.[\w.]+: (.+)$", re.MULTILINE)
_BANNER: Final = "spark is the session, log the log, and spark.sql(...) knows: {}"


@spark.command()
def sql(query: Query, source: Source = None, token: Token = None, rows: Rows = 100, as_json: AsJson = False) -> None:
    """Print the answer to one query.

    Example: annals spark sql "SELECT type, count(*) FROM entities GROUP BY type" --from http://127.0.0.1:8080
    """
    with _analyst(source, token) as (session, _):
        answer = session.sql(query)
        if not as_json:
            answer.show(rows, truncate=False)
            return
        for line in answer.toJSON().toLocalIterator():
            typer.echo(line)


@spark.command()
def shell(source: Source = None, token: Token = None) -> None:
    """Start a Python prompt with a session that knows the tables.

    Example: annals spark shell --from /var/lib/annals/segments
    """
    with _analyst(source, token) as (session, log):
        from spark_projections.analysis import TABLES

        code.interact(_BANNER.format(", ".join(TABLES)), local={"spark": session, "log": log}, exitmsg="")


@contextmanager
def _analyst(source: str | None, token: str | None) -> Iterator[tuple[SparkSession, DataFrame]]:
    """A session with the tables, the log that they are made of, and errors about both as the console tells them."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.logger import PySparkLogger

        from spark_projections import analysis
        from spark_projections.jars import NoJars
        from spark_projections.java import NoJava
        from spark_projections.session import session as session_of
    except ImportError as error:
        raise Misused(f"{error}; Spark needs the extra annals[spark].") from None
    place = source or settings_with().database
    if place.startswith("sqlite"):
        raise Misused("Spark reads no SQLite file: use --from with the URL of the registry that serves it.")
    try:
        session = session_of(connectors=["postgres"] if _is_postgres(place) else [])
        # What goes wrong is told once, and by us.
        session.sparkContext.setLogLevel("OFF")
        PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
        log = _log(session, place, token)
        analysis.register(session, log, settings_with().event_changes)
        yield session, log
    except (NoJava, NoJars) as error:
        raise Misused(f"{error}.") from None
    except (PySparkException, OSError, ValueError) as error:
        raise Refused(_line(error)) from error


def _log(session: SparkSession, place: str, token: str | None) -> DataFrame:
    if place.startswith(("http:", "https:")):
        reader = session.read.format("annals")
        # Read once: each table would ask the registry for all of it again.
        return (reader.option("token", token) if token else reader).load(place).cache()
    if _is_postgres(place):
        from spark_projections.sources import postgres

        return postgres.read(session, place)
    from spark_projections.sources import segments

    return segments.read(session, place)


def _is_postgres(place: str) -> bool:
    return place.startswith("postgresql")


def _line(error: Exception) -> str:
    """What was wrong; where an error of ours comes inside of Spark's, with two traces around it, what ours says."""
    ours = _OURS.findall(str(error))
    return str(ours[-1]) if ours else str(error).strip().partition("\n")[0]

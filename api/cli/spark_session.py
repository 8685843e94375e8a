"""Spark for the command line: its session, the log from the place that the options name, and errors as one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sqlalchemy import make_url

from api.cli.kafka_settings import spark_kafka_options
from api.cli.outcome import InvalidInput, StoreError, UsageError
from projections.entities.rebuild import PrecomputedRows, RebuildReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SourceKind = Literal["segments", "postgres", "kafka"]

#: The connectors that each source needs.
_CONNECTORS: Final = {"annals": (), "segments": (), "postgres": ("postgres",), "kafka": ("kafka",)}
#: The field of a LogLocation that each source needs, and the option that sets it.
_NEEDS: Final = {
    "annals": ("registry", "--registry"),
    "segments": ("folder", "--folder"),
    "kafka": ("brokers", "--kafka"),
}
#: What to do if a source is not the original log.
_WAYS_ON: Final = {
    "segments": "annals segments verify checks the folder",
    "postgres": "annals log verify checks the store",
    "kafka": "annals publish can write the topic again under another --prefix",
    "annals": "annals log verify checks the store of that registry",
}
#: The last line of a Python traceback of this project.
_OURS: Final = re.compile(r"^(?:spark_projections|projections|commands)\.[\w.]+: (.+)$", re.MULTILINE)


class LogLocation(NamedTuple):
    """The place of the log. folder: of segments. brokers, prefix: of topics. registry: URL, with a token."""

    source: Literal[SourceKind, "annals"]
    database: str = ""
    folder: str | None = None
    brokers: str | None = None
    prefix: str = "annals"
    registry: str | None = None
    token: str | None = None


class LogAnchors(NamedTuple):
    """The hashes that a log has to match; see `spark_projections.verify_log.ChainAnchors`.

    head: position and chain hash in hex.
    """

    registry: Callable[[int], str | None]
    head: tuple[int, str] | None = None


class EventsOutput(NamedTuple):
    """The folder for xRegistry events, and whether they list the changed attributes."""

    folder: str
    changed: bool


def parse_location(url: str, token: str | None) -> LogLocation:
    """The place that a URL names: a registry, a database, or a folder of segments."""
    if url.startswith(("http:", "https:")):
        return LogLocation("annals", registry=url, token=token)
    if url.startswith("postgresql"):
        return LogLocation("postgres", url)
    if url.startswith("sqlite"):
        raise UsageError("Spark cannot read a SQLite file: use --from with the URL of the registry that serves it.")
    return LogLocation("segments", folder=url)


@contextmanager
def open_session(place: LogLocation) -> Iterator[SparkSession]:
    """A Spark session that can read a place. A session that existed before stays open.

    Raises: UsageError if something is missing, with what to do; InvalidInput for errors of Spark.
    """
    _given(place)  # reports a missing option before the slow start of Spark
    try:
        from pyspark.errors import PySparkException
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession

        from spark_projections.jars import MissingJars
        from spark_projections.java import MissingJava
        from spark_projections.session import session
    except ImportError as error:
        raise UsageError(f"this needs Spark ({error.name} is missing): pip install 'annals[spark]'.") from None
    there = SparkSession.getActiveSession() is not None
    try:
        spark = session(connectors=_CONNECTORS[place.source])
    except (MissingJava, MissingJars) as error:
        raise UsageError(f"{error}.") from None
    # The verb reports each error once, so Spark's own log is off.
    spark.sparkContext.setLogLevel("OFF")
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    try:
        yield spark
    except (PySparkException, OSError, ValueError) as error:
        raise InvalidInput(_line(error)) from error
    finally:
        if not there:
            spark.stop()


def read_log(spark: SparkSession, place: LogLocation) -> DataFrame:
    """The log of a place, up to its end. Raises: UsageError."""
    if place.source == "annals":
        from spark_projections.sources import annals

        return annals.read(spark, _given(place), place.token)
    if place.source == "segments":
        from spark_projections.sources import segments

        return segments.read(spark, _given(place))
    if place.source == "kafka":
        from spark_projections.sources import kafka

        return kafka.read(spark, *_topic(place))
    from spark_projections.sources import postgres

    return postgres.read(spark, _given(place))


def stream_log(spark: SparkSession, place: LogLocation) -> DataFrame:
    """The log of a registry or of a topic, as a stream. Raises: UsageError."""
    if place.source == "kafka":
        from spark_projections.sources import kafka

        return kafka.stream(spark, *_topic(place))
    reader = spark.readStream.format("annals").options(**({"token": place.token} if place.token else {}))
    return reader.load(_given(place))


def rebuild_rows(
    place: LogLocation,
    replace: Callable[[PrecomputedRows], RebuildReport],
    asof: int | None,
    stage: str | None,
    events: EventsOutput | None,
    most: int,
    anchors: LogAnchors,
) -> RebuildReport:
    """The report of `replace` for the rows that Spark computed; see `spark_projections.rebuild`.

    Raises: UsageError if something is missing, with what to do; InvalidInput if the events exist already; StoreError
    for a source that is not the original log.
    """
    with open_session(place) as spark:
        from spark_projections.events import EventDestination
        from spark_projections.log_schema import LogHead
        from spark_projections.rebuild import rebuild
        from spark_projections.verify_log import ChainAnchors, UnverifiedLog

        if stage is None and not (spark.sparkContext.master or "").startswith("local"):
            raise UsageError("--stage is needed: a folder that this machine and the workers of the cluster reach.")
        try:
            trust = ChainAnchors(anchors.registry, LogHead(*anchors.head) if anchors.head else None)
            found, whole = _of_rebuild(spark, place)
            return rebuild(
                found, replace, asof, stage, EventDestination(*events) if events else None, whole, most, trust
            )
        except FileExistsError as error:
            raise InvalidInput(f"{error}; events that were written stay as they are.") from None
        except UnverifiedLog as error:
            raise StoreError(f"{error}. Nothing was loaded; {_WAYS_ON[place.source]}.") from error


def _of_rebuild(spark: SparkSession, place: LogLocation) -> tuple[DataFrame, Callable[[DataFrame], DataFrame] | None]:
    """The log of a place, and a function that limits it to complete interactions, if the rebuild has to call one."""
    if place.source == "segments":
        from spark_projections.sources import segments

        return segments.read_verified(spark, _given(place)), None
    if place.source != "kafka":
        return read_log(spark, place), None
    from spark_projections.sources import kafka

    return kafka.read_rows(spark, *_topic(place)), kafka.whole_interactions


def _topic(place: LogLocation) -> tuple[str, str, dict[str, str]]:
    """Brokers, topic and options for Spark. Raises: UsageError."""
    servers, options = spark_kafka_options(_given(place))
    return servers, f"{place.prefix}.log", options


def _given(place: LogLocation) -> str:
    """The place of the log, as its source expects it. Raises: UsageError if the required option is missing."""
    if place.source == "postgres":
        if make_url(place.database).get_backend_name() != "postgresql":
            raise UsageError("--from postgres needs a PostgreSQL store. For a SQLite store, write segments first.")
        return place.database
    name, option = _NEEDS[place.source]
    if (value := getattr(place, name)) is None:
        raise UsageError(f"--from {place.source} needs {option}.")
    return str(value)


def _line(error: Exception) -> str:
    """The reason of an error.

    If Spark wraps an error of this project in two tracebacks, the message of the inner error.
    """
    ours = _OURS.findall(str(error))
    return str(ours[-1]) if ours else str(error).strip().partition("\n")[0]

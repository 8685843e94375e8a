"""Spark for the command line: its session, the log at the location that the options name, and errors as one line."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sqlalchemy import make_url

from annals.api.cli.outcome import InvalidInput, StoreError, UsageError
from annals.api.cli.progress import ReportProgress
from annals.api.cli.spark_interrupts import interruptible_jobs, own_interrupts, silent_py4j
from annals.api.cli.spark_progress import reported_tasks
from annals.projections.entities.rebuild import PrecomputedRows, RebuildReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SourceKind = Literal["segments", "postgres", "kafka"]

#: What pip installs for Spark: the same as the extra `spark` of pyproject.toml.
SPARK_PACKAGES: Final = ("pyspark>=4.0,<4.1", "pyarrow>=18", "pandas>=2.2,<3")
#: The connectors that each source needs.
_CONNECTORS: Final = {"annals": (), "segments": (), "postgres": ("postgres",), "kafka": ("kafka",)}
#: The field of a LogLocation that each source needs, and the option that sets it.
_REQUIRED_OPTIONS: Final = {
    "annals": ("registry", "--registry"),
    "segments": ("folder", "--folder"),
    "kafka": ("brokers", "--kafka"),
}
#: What to do if a source is not the original log.
REMEDIES: Final = {
    "segments": "annals segments verify checks the folder",
    "postgres": "annals log verify checks the store",
    "kafka": "annals publish can write the topic again under another --prefix",
    "annals": (
        "the token has to be that of an administrator, who sees the whole log; the PostgreSQL database and the segments"
        " of that registry need none; annals log verify checks its store"
    ),
}
_JAVA_HAS_ENDED: Final = (
    "Spark's Java process has ended, perhaps for lack of memory (ANNALS_SPARK_MEMORY); start the command again, which"
    " goes on from what is complete."
)
_JAVA_HAS_NOT_STARTED: Final = (
    "Spark's Java process has ended while it started. Lines of Java above may say why; else check its memory"
    " (ANNALS_SPARK_MEMORY), and whether its local folder {folder} (spark.local.dir) is full or cannot be written."
)
#: The folder for tables without a place, which Spark makes in the current folder even if there are none.
_WAREHOUSE: Final = "spark-warehouse"


class LogLocation(NamedTuple):
    """The location of a log. folder: of segments. brokers, prefix: of topics. registry: URL, with a token."""

    source: Literal[SourceKind, "annals"]
    database: str = ""
    folder: str | None = None
    brokers: str | None = None
    prefix: str = "annals"
    registry: str | None = None
    token: str | None = None


class LogAnchors(NamedTuple):
    """The hashes that a log has to match; see `annals.spark_projections.verify_log.ChainAnchors`.

    head: position and chain hash in hex.
    """

    registry: Callable[[int], str | None]
    head: tuple[int, str] | None = None


class EventsOutput(NamedTuple):
    """The folder for xRegistry events, and whether they list the changed attributes."""

    folder: str
    changed: bool


def parse_location(url: str, token: str | None) -> LogLocation:
    """The location that a URL names: a registry, a database, or a folder of segments."""
    if url.startswith(("http:", "https:")):
        return LogLocation("annals", registry=url, token=token)
    if url.startswith(("postgresql:", "postgresql+")):
        return LogLocation("postgres", url)
    if url.startswith("postgres:"):
        raise UsageError("--from: the URL of a PostgreSQL database begins with postgresql://, not postgres://.")
    if url.startswith("sqlite"):
        raise UsageError("Spark cannot read a SQLite file: use --from with the URL of the registry that serves it.")
    return LogLocation("segments", folder=url)


@contextmanager
def open_session(
    location: LogLocation | None, connectors: Iterable[str] = (), output: str | None = None
) -> Iterator[SparkSession]:
    """A Spark session that can read a log at a location. A session that existed before stays open.

    connectors: further ones that the session needs. output: the folder that is written, for messages.
    Raises: UsageError if something is missing, with what to do; InvalidInput for errors of Spark; StoreError for
    segments that are missing or unreadable, a folder that cannot be written, and a session that does not start;
    Interrupted.
    """
    if location is not None:
        required_location(location)  # reports a missing option before the slow start of Spark
    try:
        from py4j.protocol import Py4JJavaError, Py4JNetworkError
        from pyspark.errors import PySparkException
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession

        from annals.projections.segments.folder import MissingSegment, NoSegments
        from annals.projections.segments.manifest import UnreadableManifestEntry
        from annals.spark_projections.sources.remote_log import RemoteLogError, UnreachableRegistry
        from annals.spark_projections.spark_errors import error_line, is_file_error, is_source_away, is_source_error
    except ImportError as error:
        raise missing_spark(error) from None
    has_session = SparkSession.getActiveSession() is not None
    spark = _start_session((*(_CONNECTORS[location.source] if location else ()), *connectors))
    # The verb reports each error once, so Spark's own log is off.
    spark.sparkContext.setLogLevel("OFF")
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    try:
        with interruptible_jobs(spark):
            yield spark
    except (NoSegments, MissingSegment, UnreadableManifestEntry) as error:
        raise StoreError(f"{error}.") from error
    except (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError) as error:
        raise StoreError(_JAVA_HAS_ENDED) from error
    except UnreachableRegistry as error:
        raise StoreError(f"{error}.") from error
    except (PySparkException, Py4JJavaError, RemoteLogError, OSError, ValueError) as error:
        if location is not None and is_source_error(error):
            raise StoreError(f"{_described(location)} cannot be read: {error_line(error)}") from error
        if is_source_away(error):
            raise StoreError(f"{error_line(error)}.") from error
        if is_file_error(error):
            raise StoreError(f"{_file_problem(error_line(error), output)}.") from error
        raise InvalidInput(error_line(error)) from error
    finally:
        if not has_session:
            with suppress(Py4JNetworkError, ConnectionRefusedError, ConnectionResetError):  # its process has ended
                spark.stop()
            with suppress(OSError):  # missing, or in use
                Path(_WAREHOUSE).rmdir()


def _start_session(connectors: tuple[str, ...]) -> SparkSession:
    """The session of this process, a new one where there is none. Raises: UsageError, StoreError."""
    from py4j.protocol import Py4JJavaError, Py4JNetworkError
    from pyspark.errors import PySparkException

    from annals.spark_projections.jars import MissingJars
    from annals.spark_projections.java import MissingJava
    from annals.spark_projections.session import SparkSettings, local_folder, session
    from annals.spark_projections.spark_errors import error_line

    settings = SparkSettings()
    try:
        with own_interrupts(), silent_py4j():
            # Java would print traces of hundreds of lines; a user who sets a level gets them.
            quiet = {"spark.log.level": "OFF"} | settings.conf
            return session(settings.model_copy(update={"conf": quiet}), connectors)
    except (MissingJava, MissingJars) as error:
        raise UsageError(f"{error}.") from None
    except (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError) as error:
        raise StoreError(_JAVA_HAS_NOT_STARTED.format(folder=local_folder(settings))) from error
    except (PySparkException, Py4JJavaError, OSError) as error:
        if isinstance(error, PySparkException) and error.getCondition() == "JAVA_GATEWAY_EXITED":
            raise StoreError(_JAVA_HAS_NOT_STARTED.format(folder=local_folder(settings))) from error
        raise StoreError(f"Spark does not start: {_file_problem(error_line(error))}.") from error


def _file_problem(line: str, output: str | None = None) -> str:
    """The reason of an error, with the folders that a full disk may have; Java does not name its files then."""
    if not line.endswith("No space left on device"):
        return line
    from annals.spark_projections.session import SparkSettings, local_folder

    places = [*([output] if output else ()), f"{local_folder(SparkSettings())}, the local folder of Spark"]
    return f"{line}: the disk of {' or of '.join(places)} (spark.local.dir) is full"


def _described(location: LogLocation) -> str:
    """What a location is, without a password."""
    if location.source == "kafka":
        return f"the topic {location.prefix}.log at {location.brokers}"
    if location.source == "postgres":
        url = make_url(location.database)
        return f"the database {url.database} at {url.host or 'this machine'}:{url.port or 5432}"
    return str(getattr(location, _REQUIRED_OPTIONS[location.source][0]))


def missing_spark(error: ImportError) -> UsageError:
    """The error for a library of Spark that is not installed."""
    command = shlex.join((sys.executable, "-m", "pip", "install", *SPARK_PACKAGES))
    return UsageError(f"this needs Spark ({error.name} is missing); install it with: {command}")


def read_log(spark: SparkSession, location: LogLocation) -> DataFrame:
    """The log at a location, up to its end. Raises: UsageError."""
    if location.source == "annals":
        from annals.spark_projections.sources import annals

        return annals.read(spark, required_location(location), location.token)
    if location.source == "segments":
        from annals.spark_projections.sources import segments

        return segments.read(spark, required_location(location))
    if location.source == "kafka":
        from annals.spark_projections.sources import kafka

        return kafka.read(spark, *topic_options(location))
    from annals.spark_projections.sources import postgres

    return postgres.read(spark, required_location(location))


def rebuild_rows(
    location: LogLocation,
    replace: Callable[[PrecomputedRows], RebuildReport],
    asof: int | None,
    stage_folder: str | None,
    events: EventsOutput | None,
    max_leaves: int,
    anchors: LogAnchors,
    report_tasks: ReportProgress,
    report_rows: ReportProgress,
) -> RebuildReport:
    """The report of `replace` for the rows that Spark computed; see `annals.spark_projections.read_model.rebuild`.

    report_tasks: receives the number of completed tasks of Spark. report_rows: the number of rows that this process
    has inserted, with a total of 0, as it is not known.
    Raises: UsageError if something is missing, with what to do; InvalidInput if the events exist already; StoreError
    for a source that is not the original log.
    """
    with open_session(location) as spark, reported_tasks(spark, report_tasks):
        from annals.spark_projections.events import EventDestination
        from annals.spark_projections.log_schema import LogHead
        from annals.spark_projections.read_model.rebuild import rebuild
        from annals.spark_projections.verify_log import ChainAnchors, UnverifiedLog

        if stage_folder is None and not (spark.sparkContext.master or "").startswith("local"):
            raise UsageError("--stage is needed: a folder that this machine and the workers of the cluster reach.")
        try:
            chain_anchors = ChainAnchors(anchors.registry, LogHead(*anchors.head) if anchors.head else None)
            log_rows, limit_to_complete = _rebuild_log(spark, location)
            return rebuild(
                log_rows,
                replace,
                asof,
                stage_folder,
                EventDestination(*events) if events else None,
                limit_to_complete,
                max_leaves,
                chain_anchors,
                lambda count: report_rows(count, 0),
            )
        except FileExistsError as error:
            raise InvalidInput(f"{error}; events that were written stay as they are.") from None
        except UnverifiedLog as error:
            raise StoreError(f"{error}. Nothing was loaded; {REMEDIES[location.source]}.") from error


def _rebuild_log(
    spark: SparkSession, location: LogLocation
) -> tuple[DataFrame, Callable[[DataFrame], DataFrame] | None]:
    """The log at a location, and a function that limits it to complete interactions, if the rebuild has to call one."""
    if location.source == "segments":
        from annals.spark_projections.sources import segments

        return segments.read_verified(spark, required_location(location)), None
    if location.source != "kafka":
        return read_log(spark, location), None
    from annals.spark_projections.sources import kafka

    return kafka.read_rows(spark, *topic_options(location)), kafka.whole_interactions


def topic_options(location: LogLocation) -> tuple[str, str, dict[str, str]]:
    """Brokers, topic and options for Spark. Raises: UsageError."""
    from annals.api.cli.kafka_settings import spark_kafka_options  # imports Kafka's client

    servers, options = spark_kafka_options(required_location(location))
    return servers, f"{location.prefix}.log", options


def required_location(location: LogLocation) -> str:
    """The location of the log, as its source expects it. Raises: UsageError if the required option is missing."""
    if location.source == "postgres":
        if make_url(location.database).get_backend_name() != "postgresql":
            raise UsageError("--from postgres needs a PostgreSQL store. For a SQLite store, write segments first.")
        return location.database
    name, option = _REQUIRED_OPTIONS[location.source]
    if (value := getattr(location, name)) is None:
        raise UsageError(f"--from {location.source} needs {option}.")
    return str(value)

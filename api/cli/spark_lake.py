"""The lake for the command line: opens it, follows a log, and turns its errors into errors of the command line."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import typer

from annals.api.cli.outcome import StoreError, UsageError
from annals.api.cli.progress import ReportProgress
from annals.api.cli.setup.notices import print_notice
from annals.api.cli.spark_progress import reported_tasks
from annals.api.cli.spark_session import (
    REMEDIES,
    LogLocation,
    missing_spark,
    open_session,
    required_location,
    topic_options,
)

if TYPE_CHECKING:
    from annals.spark_projections.lake.append import AppendReport, Lake
    from annals.spark_projections.lake.source import LogSource
    from annals.spark_projections.lake.verify import TableReport

FormatName = Literal["delta", "iceberg", "parquet"]
#: The connectors that each format needs.
_CONNECTORS: Final[dict[FormatName, tuple[str, ...]]] = {
    "delta": ("delta",),
    "iceberg": ("iceberg",),
    "parquet": (),
}
#: How the URIs of folders on this machine begin.
_FILE: Final = "file://"


class LakePlace(NamedTuple):
    """Where a lake is. uri: its folder. tables: names; empty for all."""

    format: FormatName
    uri: str
    tables: tuple[str, ...] = ()


def append_lake(
    place: LakePlace, location: LogLocation, report: ReportProgress, stop: Event, seconds: float | None
) -> None:
    """Brings the tables up to the end of the log.

    stop: ends it after the table that it works on. seconds: until the next look at the log; None for one look only.
    With further looks, it waits for a lake to which another process writes, and for a registry that does not answer.
    Raises: UsageError, InvalidInput, StoreError.
    """
    names = _names(place)
    _check_folder(place, is_new=True)
    _check_source(location)
    with _open_lake(place, location) as lake, reported_tasks(lake.spark, report):
        source = _source(lake, location)
        position = -1
        while True:
            try:
                result = _append_once(lake, source, location, names, stop.is_set)
                if result.position != position:
                    typer.echo(f"position {result.position}, {result.events} new events")
                position = result.position
            except Exception as error:
                if seconds is None or not _may_pass(error):
                    raise
                from annals.spark_projections.spark_errors import error_line

                print_notice(f"{error_line(error)}; trying again", logging.WARNING)
            if seconds is None or stop.wait(seconds):
                return


def _may_pass(error: Exception) -> bool:
    """Whether a later try may succeed: another process writes to the lake, or the registry or the database is away."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from annals.spark_projections.lake.formats.contract import LakeBusy
    from annals.spark_projections.sources.remote_log import UnreachableRegistry
    from annals.spark_projections.spark_errors import is_source_away

    if isinstance(error, PySparkException | Py4JJavaError):
        return is_source_away(error)
    return isinstance(error, LakeBusy | UnreachableRegistry)


def _append_once(
    lake: Lake, source: LogSource, location: LogLocation, names: Collection[str], is_stopped: Callable[[], bool]
) -> AppendReport:
    from annals.spark_projections.lake.append import AnotherLog, append
    from annals.spark_projections.lake.observations import observe
    from annals.spark_projections.sources.kafka import RecordsMissing
    from annals.spark_projections.verify_log import UnverifiedLog

    try:
        result = append(lake, source, names, is_stopped=is_stopped)
    except AnotherLog as error:
        remedy = "choose the source that the lake has its log from, or another folder"
        raise StoreError(f"{error}. Nothing was added; {remedy}.") from error
    except (UnverifiedLog, RecordsMissing) as error:
        raise StoreError(f"{error}. Nothing was added; {REMEDIES[location.source]}.") from error
    if location.source == "annals":
        taken = datetime.now(UTC)
        seen = observe(lake.spark, required_location(location), location.token, taken)
        lake.add_observations({name: rows for name, rows in seen.items() if name in names}, taken)
    return result


def verify_lake(place: LakePlace, head: tuple[int, str] | None, report: ReportProgress) -> None:
    """Prints the result of each table.

    Raises: StoreError where a table is not what the log says; UsageError, InvalidInput.
    """
    _check_folder(place)
    with _open_lake(place) as lake, reported_tasks(lake.spark, report):
        from annals.spark_projections.lake.verify import verify
        from annals.spark_projections.log_schema import LogHead
        from annals.spark_projections.verify_log import ChainAnchors

        result = verify(lake, ChainAnchors(head=LogHead(*head)) if head else None)
    for table in result.tables:
        typer.echo(f"{table.name}\t{table.position}\t{table.rows}\t{table.finding or 'equal to the log'}")
    if damaged := [table for table in result.tables if table.finding]:
        raise StoreError(f"{_what_to_do(damaged)}.")
    typer.echo(result.summary)


def _what_to_do(damaged: Sequence[TableReport]) -> str:
    """What to do about tables with findings."""
    from annals.spark_projections.lake.tables import LOG

    first = damaged[0]
    if first.name == LOG:
        # The other tables may be right, although they differ from this log.
        is_there = first.position or first.rows
        state, first_step = ("not the one that was written", "remove its folder, ") if is_there else ("missing", "")
        remedy = f"{first_step}annals lake append makes it again, and then annals lake verify compares the other tables"
        return f"{LOG} is {state}, so no table is proven; {remedy}"
    names = ", ".join(table.name for table in damaged)
    return f"{names} differ from the log; remove the folders of these tables, and annals lake append makes them again"


def optimize_lake(place: LakePlace, keep_hours: float, report: ReportProgress) -> None:
    """Makes files few, and removes those that are older than the given hours and no longer count.

    Raises: UsageError, InvalidInput, StoreError.
    """
    names = _names(place)
    _check_folder(place)
    with _open_lake(place) as lake, reported_tasks(lake.spark, report):
        from annals.spark_projections.lake.optimize import optimize

        optimize(lake, keep_hours, names)


@contextmanager
def _open_lake(place: LakePlace, location: LogLocation | None = None) -> Iterator[Lake]:
    with open_session(location, _CONNECTORS[place.format], place.uri) as spark:
        from annals.spark_projections.lake.append import Lake
        from annals.spark_projections.lake.formats.contract import NoTables

        try:
            yield Lake(spark, place.format, place.uri)
        except NoTables as error:
            raise StoreError(f"{error}.") from error


def _names(place: LakePlace) -> tuple[str, ...]:
    """The names of tables, all where none are given. Raises: UsageError for an unknown one, and without Spark."""
    try:
        from annals.spark_projections.lake.tables import ALL_TABLES
    except ImportError as error:
        raise missing_spark(error) from None
    if unknown := sorted(set(place.tables) - set(ALL_TABLES)):
        raise UsageError(f"--table {unknown[0]} is not one of {', '.join(ALL_TABLES)}.")
    return place.tables or tuple(ALL_TABLES)


# What is checked below is found before the slow start of Spark.


def _check_folder(place: LakePlace, *, is_new: bool = False) -> None:
    """Checks the folder of a lake if it is one of this machine. is_new: whether it need not be there.

    Raises: UsageError for a file, StoreError.
    """
    from annals.spark_projections.hadoop_paths import spark_uri

    uri = spark_uri(place.uri)
    if not uri.startswith(_FILE):
        return
    folder = Path(uri.removeprefix(_FILE))
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--to {place.uri} is a file; a lake needs a folder.")
    if not is_new and not folder.exists():
        raise StoreError(f"there are no tables of the format {place.format} at {place.uri}: there is no such folder.")


def _check_source(location: LogLocation) -> None:
    """Checks that a folder of segments has a log. Raises: UsageError, StoreError."""
    if location.source != "segments":
        return
    try:
        from annals.projections.segments.folder import MissingSegment, NoSegments, open_folder
    except ImportError as error:
        raise missing_spark(error) from None
    folder = required_location(location)
    try:
        with suppress(OSError):  # Spark says more about it
            open_folder(folder).unbroken_ranges()
    except ValueError as error:
        raise UsageError(f"--from {folder} is no source of a log: {error}.") from None
    except (NoSegments, MissingSegment) as error:
        raise StoreError(f"{error}.") from error


def _source(lake: Lake, location: LogLocation) -> LogSource:
    from annals.spark_projections.lake import source

    if location.source == "kafka":
        return source.from_kafka(lake.spark, *topic_options(location), lake.time_of)
    place = required_location(location)
    if location.source == "annals":
        return source.from_registry(lake.spark, place, location.token)
    return {"segments": source.from_segments, "postgres": source.from_postgres}[location.source](lake.spark, place)

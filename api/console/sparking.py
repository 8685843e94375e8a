"""A rebuild by Spark: its session, and the log from where the options say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from sqlalchemy import make_url

from api.console.outcome import Misused, Refused
from projections.entities.rebuild import Computed, Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Source = Literal["segments", "postgres", "kafka"]

#: The connector that a source needs, where it needs one.
_CONNECTORS: Final = {"segments": (), "postgres": ("postgres",), "kafka": ("kafka",)}


class Place(NamedTuple):
    """Where the log is read. folder: of segments. brokers, prefix: of topics."""

    source: Source
    database: str
    folder: str | None
    brokers: str | None
    prefix: str


class Events(NamedTuple):
    """The folder that xRegistry events go to, and whether they say which attributes changed."""

    folder: str
    changed: bool


def rebuilt(
    place: Place, replace: Callable[[Computed], Report], asof: int | None, stage: str | None, events: Events | None
) -> Report:
    """What `replace` makes of the rows that Spark worked out, see `spark_projections.rebuild`.

    Raises: Misused where something is missing, with what to do; Refused for events that are there already.
    """
    with _session(place) as spark:
        from spark_projections.events import Destination
        from spark_projections.rebuild import rebuild

        try:
            return rebuild(_log(spark, place), replace, asof, stage, Destination(*events) if events else None)
        except FileExistsError as error:
            raise Refused(f"{error}; events that were written stay as they are.") from None


@contextmanager
def _session(place: Place) -> Iterator[SparkSession]:
    try:
        from spark_projections.jars import NoJars
        from spark_projections.java import NoJava
        from spark_projections.session import session
    except ImportError as error:
        raise Misused(f"this needs Spark ({error.name} is missing): pip install 'annals[spark]'.") from None
    try:
        spark = session(connectors=_CONNECTORS[place.source])
    except (NoJava, NoJars) as error:
        raise Misused(str(error)) from None
    try:
        yield spark
    finally:
        spark.stop()


def _log(spark: SparkSession, place: Place) -> DataFrame:
    if place.source == "segments":
        from spark_projections.sources import segments

        return segments.read(spark, _given(place.folder, "--folder", "segments"))
    if place.source == "kafka":
        from spark_projections.sources import kafka

        return kafka.read(spark, _given(place.brokers, "--kafka", "kafka"), f"{place.prefix}.log")
    if make_url(place.database).get_backend_name() != "postgresql":
        raise Misused("--from postgres needs a PostgreSQL store. Of a SQLite one, write segments first.")
    from spark_projections.sources import postgres

    return postgres.read(spark, place.database)


def _given(value: str | None, option: str, source: str) -> str:
    if value is None:
        raise Misused(f"--from {source} needs {option}.")
    return value

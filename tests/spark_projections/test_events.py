"""The xRegistry events that Spark computes from a log: those of the feed, as a table and as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import append_segments as write_segments
from annals.spark_projections import analysis
from annals.spark_projections.events import EventDestination, write_events, xregistry_events
from annals.spark_projections.log_schema import LOG_SCHEMA
from annals.spark_projections.read_model.rebuild import rebuild
from tests.spark_projections.served_registry import ServedLog, served_log
from tests.support.serving import annals

NDJSON = {"accept": "application/x-ndjson"}


@pytest.fixture(scope="module")
def log(spark: SparkSession, registry: ServedLog) -> DataFrame:
    """The log of the registry."""
    return table(spark, registry)


def table(spark: SparkSession, registry: ServedLog) -> DataFrame:
    """A log in several partitions."""
    return spark.createDataFrame([tuple(row) for row in registry.rows()], LOG_SCHEMA).repartition(5)


def feed(url: str, query: str = "") -> list[str]:
    """The lines of the live feed, from the beginning on."""
    return httpx.get(f"{url}/-/events{query}", headers=NDJSON).raise_for_status().text.split("\n")[:-1]


def events_of_table(events: DataFrame) -> list[str]:
    """The same lines of a table of events."""
    return [row.event for row in events.orderBy("position", "sequence").collect()]


def test_the_events_of_the_feed(log: DataFrame, registry: ServedLog) -> None:
    # EV-77, EV-79: byte for byte, in the feed's order, from a log whose rows are in any order
    live = feed(registry.url)
    assert events_of_table(xregistry_events(log)) == live
    assert {json.loads(line)["type"] for line in live} > {"io.xregistry.group.updated", "io.xregistry.version.deleted"}


def test_columns_are_attributes(log: DataFrame, registry: ServedLog) -> None:
    # EV-15 to EV-25: the columns for filters have the same values as the event; ids are unique
    names = ("id", "type", "source", "subject", "xregcorrelationid")
    found = xregistry_events(log).selectExpr(
        *names, "date_format(time, \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'\") time", "event"
    )
    rows = found.collect()
    assert rows and len({row.id for row in rows}) == len(rows)
    for row in rows:
        event = json.loads(row.event)
        assert row[:-1] == tuple(event[name] for name in (*names, "time"))


def test_two_events_of_one_position_and_none_with_data(spark: SparkSession, sqlite_url: str, tmp_path: Path) -> None:
    # EV-77: the event of a deprecation follows that of the update; EV-49: data follow the registry's setting
    with served_log(sqlite_url, tmp_path, ANNALS_EVENT_CHANGES="false") as registry:
        registry.write("PATCH", "/schemagroups/one", {"deprecated": {}})
        log, live = table(spark, registry), feed(registry.url)
    assert events_of_table(xregistry_events(log, changed=False)) == live != events_of_table(xregistry_events(log))
    positions = [row.position for row in xregistry_events(log).collect()]
    assert len({*positions}) == len(positions) - 1


def test_the_table(spark: SparkSession, log: DataFrame, registry: ServedLog) -> None:
    # the feed's filters, as conditions in SQL
    analysis.register(spark, log)
    found = spark.sql("SELECT * FROM xregistry_events WHERE type LIKE '%.version.%' AND subject LIKE '/schemagroups/%'")
    live = feed(registry.url, "?type=io.xregistry.version.*")
    assert events_of_table(found) == [line for line in live if json.loads(line)["subject"].startswith("/schemagroups/")]


@pytest.mark.parametrize("family", ["schemaregistry", "messagecatalog"])
def test_the_tables_of_the_legacy_families(
    spark: SparkSession, log: DataFrame, registry: ServedLog, family: str
) -> None:
    # LEG-1001: byte for byte those of the feed
    analysis.register(spark, log)
    live = feed(registry.url, f"?family={family}")
    assert events_of_table(spark.sql(f"SELECT * FROM {family}_events")) == live
    assert live


def test_files_are_written_once(spark: SparkSession, log: DataFrame, registry: ServedLog, tmp_path: Path) -> None:
    # existing files are never overwritten; a rebuild refuses the folder before it reads the log
    folder = (tmp_path / "events").as_uri()
    write_events(log.where("last <= 40"), EventDestination(folder))
    before = {path: path.read_bytes() for path in (tmp_path / "events").iterdir()}
    with pytest.raises(FileExistsError):
        write_events(log, EventDestination(folder))

    def replace_rows(_: object) -> NoReturn:
        raise AssertionError("the rebuild went on")

    unreadable = log.withColumn("state", f.raise_error(f.lit("the log was read")).cast("string"))
    with pytest.raises(FileExistsError):
        rebuild(unreadable, replace_rows, events=EventDestination(folder))
    assert {path: path.read_bytes() for path in (tmp_path / "events").iterdir()} == before
    assert (tmp_path / "events" / "_SUCCESS") in before
    asof = max(row.last for row in registry.rows() if row.last <= 40)
    live = [json.loads(line) for line in feed(registry.url)]
    by_then = {row.xregcorrelationid for row in registry.rows() if row.last <= asof}
    written = [json.loads(line) for line in events_of_table(spark.read.parquet(folder))]
    assert written == [event for event in live if event["xregcorrelationid"] in by_then]


@pytest.mark.long
def test_the_console_writes_them(spark: SparkSession, sqlite_url: str, tmp_path: Path) -> None:
    # with the registry's own setting; an existing folder is refused
    with served_log(sqlite_url, tmp_path) as registry:
        live = feed(registry.url)
    write_segments(sqlite_url, open_folder(str(tmp_path / "segments")))
    options = ("--engine", "spark", "--from", "segments", "--folder", str(tmp_path / "segments"))
    target = ("--database", sqlite_url, "--events", str(tmp_path / "events"))
    done = annals("rebuild", *options, *target, cwd=tmp_path, ANNALS_SPARK_MASTER="local[2]")
    assert done.returncode == 0, done.stderr
    assert events_of_table(spark.read.parquet(str(tmp_path / "events"))) == live
    again = annals("rebuild", *options, *target, cwd=tmp_path, ANNALS_SPARK_MASTER="local[2]")
    assert (again.returncode, "exists already" in again.stderr) == (1, True), again.stderr
    alone = annals("rebuild", *target, cwd=tmp_path)
    assert (alone.returncode, "--engine spark" in alone.stderr) == (2, True), alone.stderr

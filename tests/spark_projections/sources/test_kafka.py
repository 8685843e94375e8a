"""Kafka's topic of the log as a source, from a real broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kafka import KafkaProducer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from annals.projections.entities.rebuild import PrecomputedRows, RebuildReport
from annals.spark_projections.log_schema import LOG_SCHEMA
from annals.spark_projections.read_model.rebuild import rebuild
from annals.spark_projections.sources import kafka as source
from annals.spark_projections.verify_log import UnverifiedLog
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.served_registry import ServedLog, collect_rows
from tests.support.brokers import kafka
from tests.support.serving import annals

pytestmark = [pytest.mark.uses("Kafka", "Spark"), pytest.mark.timeout(300)]


class Published(NamedTuple):
    """A broker with the log of `registry` on the topic `annals.log`. records: of that topic."""

    broker: kafka.Kafka
    records: list[Any]

    def copy(self, topic: str, records: Iterable[Any]) -> str:
        """Creates a topic with some records; returns its name."""
        self.broker.make(topic, 2)
        self.add(topic, records)
        return topic

    def add(self, topic: str, records: Iterable[Any]) -> None:
        """Adds records to a topic."""
        with closing(KafkaProducer(bootstrap_servers=self.broker.own())) as producer:
            for record in records:
                producer.send(topic, record.value, record.key, [*record.headers])
            producer.flush()


@pytest.fixture(scope="module")
def published(
    connectors: list[str], registry: ServedLog, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Published]:
    require_connector(connectors, "kafka")
    with closing(kafka.Kafka()) as broker:
        broker.start()
        options = ("--once", "--partitions", "3", "--database", registry.database)
        done = annals("publish", "--kafka", broker.own(), *options, cwd=tmp_path_factory.mktemp("publish"))
        assert done.returncode == 0, done.stderr
        with kafka.topic_consumer(broker.own(), "annals.log") as consumer:
            yield Published(broker, kafka.next_records(consumer, len(registry.rows())))


def test_the_topic_is_the_log(spark: SparkSession, registry: ServedLog, published: Published) -> None:
    # EV-78, EV-79: each event once, from all partitions
    log = source.read(spark, published.broker.own(), "annals.log")
    assert len({record.partition for record in published.records}) > 1
    assert log.schema.simpleString() == LOG_SCHEMA.simpleString()
    assert collect_rows(log) == registry.rows()


def test_what_is_there_twice_comes_once(spark: SparkSession, registry: ServedLog, published: Published) -> None:
    # EV-79: a topic has each event at least once
    topic = published.copy("twice", [*published.records, *published.records[:30]])
    assert collect_rows(source.read(spark, published.broker.own(), topic)) == registry.rows()


@pytest.mark.long
@pytest.mark.parametrize("lacking", ["first", "whole", "part", "last"])
def test_whole_interactions_before_a_gap(
    spark: SparkSession, registry: ServedLog, published: Published, lacking: str
) -> None:
    # EV-79: one partition may lack the last records; the source returns all interactions before the first gap
    rows = registry.rows()
    row = {"first": rows[0], "whole": rows[-5], "part": next(row for row in rows[60:] if row.first < row.position)}.get(
        lacking, rows[-1]
    )
    gone = range(row.first, row.last + 1) if lacking == "whole" else [row.position]
    remaining = [record for record in published.records if position_of(record) not in gone]
    topic = published.copy(lacking, remaining)
    assert collect_rows(source.read(spark, published.broker.own(), topic)) == [
        each for each in rows if each.last < row.first
    ]


def test_concurrently_published_records_are_left_out(
    spark: SparkSession, registry: ServedLog, published: Published
) -> None:
    # FLAG-80: the rows end where the topic ended when the source was created, in every query that reads them
    rows, records = registry.rows(), sorted(published.records, key=position_of)
    end = next(row.first for row in rows[60:] if row.first < row.position) - 1
    topic = published.copy("meanwhile", records[:end])
    log = source.read(spark, published.broker.own(), topic)
    assert log.count() == end
    published.add(topic, records[end : end + 1])
    assert collect_rows(log) == rows[:end]
    published.add(topic, records[end + 1 :])
    assert collect_rows(log) == rows[:end]
    assert collect_rows(source.read(spark, published.broker.own(), topic)) == rows


@pytest.mark.long
def test_a_rebuild_ends_before_a_gap(spark: SparkSession, registry: ServedLog, published: Published) -> None:
    # P-14: the rebuild finds the gap in the staged files of the topic, and ends before its interaction
    rows = registry.rows()
    row = next(row for row in rows[60:] if row.first < row.position)
    topic = published.copy(
        "unfinished", [record for record in published.records if position_of(record) != row.position]
    )

    def replace(found: PrecomputedRows) -> RebuildReport:
        return RebuildReport(0, found.position, 0.0)

    report = rebuild(
        source.read_rows(spark, published.broker.own(), topic), replace, drop_incomplete=source.whole_interactions
    )
    assert report.position == row.first - 1


def test_a_tampered_record_is_refused(spark: SparkSession, registry: ServedLog, published: Published) -> None:
    # P-14: the chain hash shows the position of the record, before anything is loaded
    row = registry.rows()[60]
    forged = [
        record._replace(value=record.value.replace(b'\\"epoch\\":1,', b'\\"epoch\\":7,'))
        if position_of(record) == 61
        else record
        for record in published.records
    ]
    assert forged != published.records
    topic = published.copy("forged", forged)

    def replace(found: PrecomputedRows) -> RebuildReport:
        pytest.fail("something was loaded")

    with pytest.raises(UnverifiedLog, match=rf"^position {row.first}: the chain hash differs"):
        rebuild(
            source.read_rows(spark, published.broker.own(), topic), replace, drop_incomplete=source.whole_interactions
        )


def position_of(record: Any) -> int:
    """The position of a record's event in the log."""
    return int(dict(record.headers)["annals_position"])


def test_other_columns_are_refused(spark: SparkSession, published: Published) -> None:
    # readers refuse a version of the columns that they do not know
    record = published.records[0]
    headers = [(name, b"99" if name == "annals_schema" else value) for name, value in record.headers]
    topic = published.copy("newer", [record._replace(headers=headers)])
    with pytest.raises(PySparkException, match="does not have the columns"):
        source.read(spark, published.broker.own(), topic).collect()


def test_a_stream_of_the_topic(spark: SparkSession, registry: ServedLog, published: Published, tmp_path: Path) -> None:
    # EV-79: all events arrive, and none arrives again after a restart
    for _ in range(2):
        log = source.stream(spark, published.broker.own(), "annals.log")
        writing = log.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writing.trigger(availableNow=True).start(str(tmp_path / "rows"))
        query.awaitTermination()
    assert collect_rows(spark.read.schema(LOG_SCHEMA).parquet(str(tmp_path / "rows"))) == registry.rows()

"""A lake from Kafka's topic of the log: events after a gap wait, and are read again."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from annals.spark_projections.lake import Lake, append
from annals.spark_projections.lake.append import AnotherLog
from annals.spark_projections.lake.source import LogSource, from_kafka
from annals.spark_projections.lake.verify import verify
from annals.spark_projections.sources.kafka import RecordsMissing
from tests.spark_projections.lake.lakes import ExampleLog, check_source, log_of_another_registry
from tests.spark_projections.served_registry import ServedLog
from tests.spark_projections.sources.test_kafka import Published, published

__all__ = ["published"]

pytestmark = [pytest.mark.uses("Kafka", "Spark"), pytest.mark.timeout(1200), pytest.mark.long]


def _position(record: Any) -> int:
    """The position of a record's event in the log."""
    return int(dict(record.headers)["annals_position"])


def _send(published: Published, topic: str, records: list[Any], timestamp_ms: int | None = None) -> None:
    """Sends records to the partitions that they have in their first topic. timestamp_ms: their time, instead of now."""
    with closing(KafkaProducer(bootstrap_servers=published.broker.own())) as producer:
        for record in records:
            headers = [*record.headers]
            producer.send(topic, record.value, record.key, headers, record.partition, timestamp_ms)
        producer.flush()


def test_partitions_that_are_ahead_wait(
    spark: SparkSession, registry: ServedLog, published: Published, tmp_path: Path
) -> None:
    # EV-78, EV-79: each event once, in whole interactions, while one partition is ahead of the others
    published.broker.make("lake.log", 3)
    lake = Lake(spark, "parquet", str(tmp_path / "lake"))
    source = from_kafka(spark, published.broker.own(), "lake.log")
    rows, names = registry.rows(), ("interactions", "entities", "changes")
    left, ends = list(published.records), list[int]()
    ahead = max(left, key=_position).partition
    for bound in (len(rows) // 3, 2 * len(rows) // 3, len(rows)):
        sent = [each for each in left if _position(each) <= bound - (each.partition != ahead) * 40]
        left = [record for record in left if record not in sent]
        _send(published, "lake.log", [*sent, *sent[-5:]])
        ends.append(append(lake, source, names).position)
        assert ends[-1] in {0, *(row.last for row in rows)} and ends[-1] < bound
    _send(published, "lake.log", left)
    assert append(lake, source, names).position == rows[-1].position
    assert not any(table.finding for table in verify(lake).tables)


def test_a_topic_of_another_registry(
    spark: SparkSession, registry: ServedLog, published: Published, tmp_path: Path
) -> None:
    # a topic may lack what it had, so only the records that it has tell
    broker, rows = published.broker, registry.rows()
    half = next(row.last for row in rows if row.position > len(rows) // 2)
    broker.make("half.log", 3)
    _send(published, "half.log", [record for record in published.records if _position(record) <= half])
    source = from_kafka(spark, broker.own(), "half.log")
    check_source(source, [row for row in rows if row.position <= half])
    other = ExampleLog(spark, log_of_another_registry(rows, "http://other/"), []).source()
    lake = Lake(spark, "parquet", str(tmp_path / "lake"))
    append(lake, other, ["log"])
    with pytest.raises(AnotherLog, match=f"the chain hash differs at position {half}$"):
        append(lake, source)
    # a lake that is ahead of a topic waits for it
    ahead = Lake(spark, "parquet", str(tmp_path / "ahead"))
    append(ahead, ExampleLog(spark, rows, []).source(), ["log"])
    assert append(ahead, source, ["log"]) == (rows[-1].position, 0)


def test_records_that_are_gone_are_named(
    spark: SparkSession, registry: ServedLog, published: Published, tmp_path: Path
) -> None:
    # EV-79: a topic whose beginning was deleted can never continue a lake; its oldest record shows that nothing comes
    rows = registry.rows()
    half = next(row.last for row in rows if row.position > len(rows) // 2)
    lake, broker = Lake(spark, "parquet", str(tmp_path / "lake")), published.broker
    later = [record for record in published.records if _position(record) > half]
    broker.make("cut.log", 3)
    now = int(time.time() * 1000)
    source = from_kafka(spark, broker.own(), "cut.log", None, lake.time_of)
    _send(published, "cut.log", later[1:], now)
    assert append(lake, source).position == 0
    _send(published, "cut.log", later[:1], now - 3_600_000)
    message = "the topic cut.log has later records, and not all of the interaction that follows position 0"
    with pytest.raises(RecordsMissing, match=message):
        append(lake, source)
    assert not (tmp_path / "lake" / "log").exists()


def test_the_beginning_of_a_topic_is_not_read_again(
    spark: SparkSession, registry: ServedLog, published: Published, tmp_path: Path
) -> None:
    lake, broker, names = Lake(spark, "parquet", str(tmp_path / "lake")), published.broker, ("interactions",)
    rows = registry.rows()
    half = next(row.last for row in rows if row.position > len(rows) // 2)
    broker.make("begun.log", 3)
    _send(published, "begun.log", [record for record in published.records if _position(record) <= half])
    assert append(lake, from_kafka(spark, broker.own(), "begun.log", None, lake.time_of), names).position == half
    # each partition begins with a record, two hours before the last interaction, that makes any read of it fail
    broker.make("continued.log", 3)
    before = int((datetime.fromisoformat(lake.time_of(half)) - timedelta(hours=2)).timestamp() * 1000)
    stops = [record._replace(headers=[("annals_schema", b"99")]) for record in published.records]
    _send(published, "continued.log", [*{record.partition: record for record in stops}.values()], before)
    _send(published, "continued.log", [record for record in published.records if _position(record) >= half])

    def source(time_of: Callable[[int], str]) -> LogSource:
        return from_kafka(spark, broker.own(), "continued.log", None, time_of)

    with pytest.raises(PySparkException, match="does not have the columns"):
        # all records seem to be older, so everything is read
        append(lake, source(lambda position: "2999-01-01T00:00:00+00:00"), names)
    assert append(lake, source(lake.time_of), names).position == rows[-1].position
    assert not any(table.finding for table in verify(lake).tables)

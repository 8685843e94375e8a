"""Live tables from Kafka's topic of the log: partitions arrive apart, and the tables are in the order of the log."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from spark_projections.live.folder import Folder
from tests.spark.living import MOMENTS, are_those_of, followed, killed, nothing_stray
from tests.spark.registry import Past
from tests.spark.test_kafka import Published, published

__all__ = ["published"]

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]


def send(published: Published, records: list[Any]) -> None:
    """To the partitions that they are in elsewhere."""
    with closing(KafkaProducer(bootstrap_servers=published.broker.own())) as producer:
        for record in records:
            producer.send("live.log", record.value, record.key, [*record.headers], partition=record.partition)
        producer.flush()


def test_processes_that_are_killed(spark: SparkSession, registry: Past, published: Published, tmp_path: Path) -> None:
    # EV-78, EV-79: each event once, in whole interactions, while one partition lags behind the others
    published.broker.make("live.log", 3)
    options, tables = ("--from", "kafka", "--kafka", published.broker.own(), "--prefix", "live"), tmp_path / "tables"
    rows, step = registry.rows(), len(published.records) // len(MOMENTS)
    lagging, left = published.records[0].partition, list(published.records)
    for number, moment in enumerate(MOMENTS, 1):
        sent = [
            record
            for record in left
            if int(dict(record.headers)["annals_position"]) <= number * step - (record.partition == lagging) * 20
        ]
        left = [record for record in left if record not in sent]
        send(published, [*sent, *sent[-5:]])
        killed(tmp_path, moment, *options)
        are_those_of(spark, tables, rows)
    assert followed(tmp_path, *options) == f"position {are_those_of(spark, tables, rows)}"
    held = Folder(spark, str(tables)).newest().held
    assert left and held and held[0].rows > 0
    send(published, left)
    assert followed(tmp_path, *options) == f"position {rows[-1].position}"
    assert are_those_of(spark, tables, rows) == rows[-1].position
    nothing_stray(spark, tables)

"""Live tables from Kafka's topic of the log: partitions arrive apart, and the tables are in the order of the log."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from pyspark.sql import SparkSession

from annals.spark_projections.live.folder import LiveTableFolder
from tests.spark_projections.live_tables import MOMENTS, check_no_stray_runs, check_tables, kill_at, run_to_end
from tests.spark_projections.served_registry import ServedLog
from tests.spark_projections.sources.test_kafka import Published, published
from tests.support.brokers.suite import HOST, PASSWORD, USER

__all__ = ["published"]

pytestmark = [pytest.mark.uses("Kafka", "Spark"), pytest.mark.timeout(600)]


@pytest.mark.long
def test_brokers_that_want_a_password(
    spark: SparkSession, registry: ServedLog, published: Published, tmp_path: Path
) -> None:
    # the settings of `annals publish` are those of Spark as well, and no secret is told
    (tmp_path / "hosts").write_text(f"127.0.0.1 {HOST}\n")
    (tmp_path / "events").mkdir()
    conf = {
        "spark.driver.extraJavaOptions": f"-Djdk.net.hosts.file={tmp_path / 'hosts'}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
    }
    options = ("--from", "kafka", "--kafka", published.broker.own("SASL"))
    with pytest.raises(AssertionError, match=r"SaslAuthenticationException|Authentication failed"):
        run_to_end(tmp_path, *options, conf=conf, ANNALS_KAFKA_USERNAME=USER, ANNALS_KAFKA_PASSWORD="wrong")
    said = run_to_end(tmp_path, *options, conf=conf, ANNALS_KAFKA_USERNAME=USER, ANNALS_KAFKA_PASSWORD=PASSWORD)
    assert said == f"position {check_tables(spark, tmp_path / 'tables', registry.rows())}"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"jaas" in path.read_bytes() or b"KafkaV2" in path.read_bytes() for path in written)
    assert [path for path in written if PASSWORD.encode() in path.read_bytes()] == []


def position(record: Any) -> int:
    """Of its event in the log."""
    return int(dict(record.headers)["annals_position"])


def send(published: Published, records: list[Any]) -> None:
    """To the partitions that they are in elsewhere."""
    with closing(KafkaProducer(bootstrap_servers=published.broker.own())) as producer:
        for record in records:
            producer.send("live.log", record.value, record.key, [*record.headers], partition=record.partition)
        producer.flush()


@pytest.mark.long
def test_live_tables_resume_after_kill(
    spark: SparkSession, registry: ServedLog, published: Published, tmp_path: Path
) -> None:
    # EV-78, EV-79: each event once, in whole interactions, while one partition is ahead of the others
    published.broker.make("live.log", 3)
    options, tables = ("--from", "kafka", "--kafka", published.broker.own(), "--prefix", "live"), tmp_path / "tables"
    # What a plan alone has done is the same for every source.
    rows, moments = registry.rows(), MOMENTS[1:]
    step = len(published.records) // len(moments)
    left = list(published.records)
    ahead = max(left, key=position).partition
    for number, moment in enumerate(moments, 1):
        sent = [each for each in left if position(each) <= number * step - (each.partition != ahead) * 40]
        left = [record for record in left if record not in sent]
        send(published, [*sent, *sent[-5:]])
        kill_at(tmp_path, moment, *options)
        check_tables(spark, tables, rows)
    assert run_to_end(tmp_path, *options) == f"position {check_tables(spark, tables, rows)}"
    held = LiveTableFolder(spark, str(tables)).newest_manifest().held
    assert left and held and held[0].rows > 0
    send(published, left)
    assert run_to_end(tmp_path, *options) == f"position {rows[-1].position}"
    assert check_tables(spark, tables, rows) == rows[-1].position
    check_no_stray_runs(spark, tables)

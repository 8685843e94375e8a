"""Shuffles of a lake: their number of partitions depends on the size of the log, unless the session sets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from annals.spark_projections.lake.shuffles import sized_shuffles
from annals.spark_projections.partitions import partition_count

_PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.mark.parametrize(
    ("events", "cores", "partitions"),
    [(0, 2, 1), (2000, 64, 1), (2001, 64, 64), (100_000, 2, 2), (100_001, 2, 3), (10_000_000, 2, 200)],
)
def test_all_cores_work_and_no_partition_is_large(events: int, cores: int, partitions: int) -> None:
    assert partition_count(events, cores) == partitions


@pytest.mark.uses("Spark")
def test_a_configured_number_stays(spark: SparkSession) -> None:
    configured = spark.conf.get(_PARTITIONS)
    with sized_shuffles(spark, 10_000_000):
        assert spark.conf.get(_PARTITIONS) == configured


@pytest.mark.uses("Spark")
def test_a_log_with_small_files_is_not_sent_to_all_executors(spark: SparkSession, tmp_path: Path) -> None:
    # its rows are some twenty times as large as its files, and many of them exceed the memory of an executor
    path = str(tmp_path / "log")
    spark.range(200_000).withColumn("state", f.repeat(f.lit("state"), 100)).write.parquet(path)
    log = spark.read.parquet(path)
    earlier = log.select("id", f.col("state").alias("before"))
    assert "BroadcastHashJoin" in _plan(log.join(earlier, "id"))
    with sized_shuffles(spark, 200_000):
        assert "BroadcastHashJoin" not in _plan(log.join(earlier, "id"))


def _plan(rows: DataFrame) -> str:
    plan: Any = rows._jdf
    return str(plan.queryExecution().executedPlan())

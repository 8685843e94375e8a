"""The source `annals` as a batch: the log of a running registry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from annals.projections.log.table_rows import LogTableRow
from annals.spark_projections.log_schema import LOG_SCHEMA
from annals.spark_projections.sources import annals
from tests.spark_projections.served_registry import ServedLog, collect_rows, served_log, write_changes


@pytest.mark.parametrize("size", [7, 50_000])
def test_each_row_of_the_log_comes_once(spark: SparkSession, registry: ServedLog, size: int) -> None:
    # EV-79: the whole log, byte for byte, also where tasks begin within interactions
    log = spark.read.format("annals").option("partitionsize", size).load(registry.url)
    rows = registry.rows()
    assert log.schema == LOG_SCHEMA
    assert log.rdd.getNumPartitions() == -(-len(rows) // size)
    assert collect_rows(log) == rows


def _whole(rows: list[LogTableRow], after: int, end: int) -> list[LogTableRow]:
    return [row for row in rows if row.last > after and row.last <= end]


@pytest.mark.parametrize("moment", [str, lambda row: row.time, lambda row: row.xregcorrelationid])
def test_moments_bound_what_is_read(
    spark: SparkSession, registry: ServedLog, moment: Callable[[LogTableRow], str]
) -> None:
    # FLAG-80, EV-79: whole interactions between two moments, which are positions, times or correlation ids
    rows = registry.rows()
    first, second = (next(row for row in rows if row.position == at) for at in (rows[40].first, rows[-9].last))
    named = [str(each.position) if moment is str else moment(each) for each in (first, second)]
    log = spark.read.format("annals").option("after", named[0]).option("asof", named[1]).load(registry.url)
    begins = first.last if moment is not str else first.first - 1
    assert collect_rows(log) == _whole(rows, begins, second.last)


def test_concurrent_writes_are_left_out(spark: SparkSession, sqlite_url: str, tmp_path: Path) -> None:
    # FLAG-80: the end of the log is looked up once, however often and in whatever query the rows are read
    with served_log(sqlite_url, tmp_path) as registry:
        rows, log = registry.rows(), annals.read(spark, registry.url)
        loaded = spark.read.format("annals").load(registry.url)
        before = annals.read(spark, registry.url, asof=rows[30].time)
        assert loaded.count() == len(rows)
        write_changes(registry, "late")
        assert len(registry.rows()) > len(rows)
        assert collect_rows(log) == collect_rows(loaded) == rows
        assert loaded.join(loaded.select("position"), "position").count() == len(rows)
        assert spark.read.format("annals").load(registry.url).count() == len(registry.rows())
        assert collect_rows(before) == _whole(rows, 0, rows[30].last)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"asof": "1000000"}, "400"),
        ({"upto": "3"}, "unknown options: upto; known"),
        ({"partitionsize": "-1"}, "partitionsize"),
        ({"after": "x"}, "400"),
    ],
)
def test_options_that_will_not_do(spark: SparkSession, registry: ServedLog, options: dict[str, str], said: str) -> None:
    # an option that was meant to exclude rows would otherwise include all of them
    with pytest.raises(PySparkException, match=said):
        spark.read.format("annals").options(**options).load(registry.url).collect()

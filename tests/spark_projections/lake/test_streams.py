"""Structured Streaming from the tables of a lake: each event once, over restarts, appends and `optimize`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from annals.spark_projections.lake import append
from annals.spark_projections.lake.optimize import optimize
from tests.spark_projections.lake.conftest import NewLake
from tests.spark_projections.lake.lakes import ExampleLog

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(1200)]


class Sink:
    """The positions in micro-batches, by the number of the batch, so that a repeated batch counts once."""

    def __init__(self) -> None:
        self.batches: dict[int, list[int]] = {}

    def take(self, batch: DataFrame, number: int) -> None:
        self.batches[number] = [row.position for row in batch.select("position").collect()]

    @property
    def positions(self) -> list[int]:
        return sorted(position for positions in self.batches.values() for position in positions)


def stream_to(sink: Sink, spark: SparkSession, format: str, table: str, checkpoint: Path) -> None:
    """Runs a stream that reads all available rows, and ends."""
    query = spark.readStream.format(format).load(table).writeStream.foreachBatch(sink.take)
    query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()


@pytest.mark.long
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_stream_reads_each_event_once(
    new_lake: NewLake, example_log: ExampleLog, tmp_path: Path, format: str
) -> None:
    lake, sink, (half, end) = new_lake(format, tmp_path), Sink(), example_log.halves()
    table, checkpoint = f"{lake.uri}/log", tmp_path / "checkpoint"
    append(lake, example_log.source(half), ["log"])
    stream_to(sink, lake.spark, format, table, checkpoint)
    assert sink.positions == [*range(1, half + 1)]
    optimize(lake, names=["log"])
    append(lake, example_log.source(end), ["log"])
    stream_to(sink, lake.spark, format, table, checkpoint)
    assert sink.positions == [*range(1, end + 1)]

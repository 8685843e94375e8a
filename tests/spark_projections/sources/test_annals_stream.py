"""The source `annals` as a stream: it continues where it ended, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from annals.projections.log.table_rows import LogTableRow
from tests.spark_projections.served_registry import ServedLog, by_position, collect_rows, served_log, write_changes


@pytest.fixture
def growing(sqlite_url: str, tmp_path: Path) -> Iterator[ServedLog]:
    """A registry for one test only."""
    with served_log(sqlite_url, tmp_path) as found:
        yield found


class Sink:
    """The rows of micro-batches, in memory. fails: the number of a batch that fails after its rows were read."""

    def __init__(self) -> None:
        self.batches: dict[int, list[LogTableRow]] = {}
        self.fails: int | None = None

    def take(self, batch: DataFrame, number: int) -> None:
        rows = collect_rows(batch)
        if number == self.fails:
            self.fails = None
            raise RuntimeError("lost")
        self.batches[number] = rows

    @property
    def rows(self) -> list[LogTableRow]:
        """The rows of all batches."""
        return by_position(row for rows in self.batches.values() for row in rows)


def run(spark: SparkSession, url: str, checkpoint: Path, sink: Sink, **options: str) -> None:
    """Runs a stream that reads all available rows, and ends."""
    source = spark.readStream.format("annals").options(partitionsize="13", **options).load(url)
    query = source.writeStream.foreachBatch(sink.take).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.long
def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, growing: ServedLog, tmp_path: Path) -> None:
    # EV-79: restarts lose and repeat no event, not even after a batch that failed and is read again
    sink, checkpoint = Sink(), tmp_path / "checkpoint"
    run(spark, growing.url, checkpoint, sink)
    assert sink.rows == growing.rows()
    write_changes(growing, "three")
    sink.fails = max(sink.batches) + 1
    with pytest.raises(StreamingQueryException):
        run(spark, growing.url, checkpoint, sink)
    write_changes(growing, "four")
    run(spark, growing.url, checkpoint, sink)
    assert sink.rows == growing.rows()
    assert len(sink.batches) == 3
    for rows in sink.batches.values():
        assert (rows[0].first, rows[-1].last) == (rows[0].position, rows[-1].position)


def test_a_stream_may_begin_at_a_moment(spark: SparkSession, growing: ServedLog, tmp_path: Path) -> None:
    # FLAG-80: after the interaction with this id
    sink, rows = Sink(), growing.rows()
    run(spark, growing.url, tmp_path / "checkpoint", sink, after=rows[50].xregcorrelationid)
    assert sink.rows == [row for row in rows if row.position > rows[50].last]


@pytest.mark.long
def test_another_log_is_refused(spark: SparkSession, growing: ServedLog, tmp_path: Path) -> None:
    # EV-79: positions of one log mean nothing in another
    sink, checkpoint, elsewhere = Sink(), tmp_path / "checkpoint", tmp_path / "other"
    elsewhere.mkdir()
    run(spark, growing.url, checkpoint, sink)
    with served_log(f"sqlite:///{elsewhere / 'annals.db'}", elsewhere) as other:
        write_changes(other, "more")
        with pytest.raises(StreamingQueryException, match="not the one that was read"):
            run(spark, other.url, checkpoint, sink)

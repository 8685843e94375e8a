"""The Spark data source `annals`: the log of a running registry, as a batch or as a stream.

    spark.read.format("annals").load("http://127.0.0.1:8080")
    spark.readStream.format("annals").option("after", "2026-11-01T00:00:00Z").load("http://127.0.0.1:8080")

Options next to the URL: `token` of a caller who may read the log; only admins get the events of subscriptions. `after`
and, for batches, `asof`: the moments that bound the read, each a position, a time or a correlation id. `partitionsize`:
how many positions one task reads. A batch ends at the end that the log has at the time of `load`, so repeated use of a
DataFrame gives the same rows.

Spark finds the source through `pyspark_annals.py`, in any session whose Python has Annals. Executors import this
module, so Annals must be installed on them. The offsets of a stream are positions, each with the chain hash of the log
there. So a stream continues exactly after its last event, and refuses a different log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from annals.projections.log.table_rows import LogTableRow
from annals.spark_projections.arrow_batches import record_batch
from annals.spark_projections.log_schema import ARROW_SCHEMA, LOG_SCHEMA, LogHead
from annals.spark_projections.sources.remote_log import RemoteLog, RemoteLogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Positions per task.
PARTITION_SIZE: Final = 50_000
#: Limits of one Arrow batch: rows, or approximate characters of state.
BATCH_ROWS: Final = 10_000
BATCH_CHARACTERS: Final = 1 << 22
#: Seconds between checks for new events; Spark by itself would check a hundred times a second.
POLL_SECONDS: Final = 0.2

_OPTIONS: Final = frozenset(("path", "token", "after", "asof", "partitionsize"))


def read(spark: SparkSession, url: str, token: str | None = None, asof: str | None = None, after: int = 0) -> DataFrame:
    """The events of whole interactions after a position up to a moment, by default the current end of the log.

    The moment is resolved once, like in `load`, so reading the DataFrame twice gives the same rows.
    Raises: PySparkException where the log is not accessible, or does not reach that moment.
    """
    options = {name: value for name, value in (("token", token), ("asof", asof)) if value is not None}
    if after:
        options["after"] = str(after)
    return spark.read.format(AnnalsSource.name()).options(**options).load(url)


class LogPartition(InputPartition):
    """The positions after `after` up to and including `end`, for one task."""

    def __init__(self, after: int, end: int) -> None:
        self.after = after
        self.end = end


class AnnalsSource(DataSource):
    """The data source. Raises: RemoteLogError for invalid options, and for a log that is not accessible."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Spark creates one source per `load` and keeps it with that DataFrame, so all its reads have the same end.
        self._end = _LogReaderBase(options).end()

    @classmethod
    def name(cls) -> str:
        return "annals"

    def schema(self) -> StructType:
        return LOG_SCHEMA

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(self.options, self._end)

    def streamReader(self, schema: StructType) -> LogStreamReader:
        return LogStreamReader(self.options)


class _LogReaderBase:
    """Common code of batches and streams. Raises: RemoteLogError for invalid options."""

    def __init__(self, options: Mapping[str, str]) -> None:
        if unknown := sorted(set(options) - _OPTIONS):
            raise RemoteLogError(f"unknown options: {', '.join(unknown)}; known options: {', '.join(sorted(_OPTIONS))}")
        if not options.get("path"):
            raise RemoteLogError('the URL of a registry is needed: load("http://...")')
        self.log = RemoteLog(options["path"], options.get("token"))
        self.after = options.get("after", "0")
        self.asof = options.get("asof")
        size = options.get("partitionsize", str(PARTITION_SIZE))
        if not (size.isascii() and size.isdecimal() and int(size)):
            raise RemoteLogError(f"the option partitionsize is {size!r}; it has to be a number of positions from 1")
        self.size = int(size)

    def end(self) -> int:
        """The position at which a batch ends: `asof`, else the current end of the log."""
        return self.log.head(self.asof).position

    def split_positions(self, after: int, end: int) -> Sequence[LogPartition]:
        """The tasks that read the positions between two; one empty task where there are none."""
        starts = range(after, end, self.size)
        return [LogPartition(start, min(start + self.size, end)) for start in starts] or [LogPartition(end, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, LogPartition), "Spark hands back what it was given"
        return arrow_batches(self.log.rows(partition.after, partition.end))


class LogReader(_LogReaderBase, DataSourceReader):
    """A batch: whole interactions, up to the end of the log at the creation of the source."""

    def __init__(self, options: Mapping[str, str], end: int) -> None:
        super().__init__(options)
        self._end = end

    def partitions(self) -> Sequence[LogPartition]:
        return self.split_positions(self.log.head(self.after).position, self._end)


class LogStreamReader(_LogReaderBase, DataSourceStreamReader):
    """A stream; each of its batches holds whole interactions. Offsets are `LogHead` values as dicts."""

    def initialOffset(self) -> dict[str, Any]:
        return self.log.head(self.after)._asdict()

    def latestOffset(self) -> dict[str, Any]:
        time.sleep(POLL_SECONDS)
        return self.log.head()._asdict()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[LogPartition]:
        start_head = LogHead(**start)
        if end["position"] < start_head.position or self.log.head(str(start_head.position)) != start_head:
            raise RemoteLogError(f"this log is not the one that was read up to position {start_head.position}")
        return self.split_positions(start_head.position, end["position"])


def arrow_batches(rows: Iterator[LogTableRow]) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow batches of `ARROW_SCHEMA`, in the same order."""
    batch, size = list[LogTableRow](), 0
    for row in rows:
        batch.append(row)
        size += len(row.state)
        if len(batch) == BATCH_ROWS or size > BATCH_CHARACTERS:
            yield record_batch(batch, ARROW_SCHEMA)
            batch, size = [], 0
    if batch:
        yield record_batch(batch, ARROW_SCHEMA)

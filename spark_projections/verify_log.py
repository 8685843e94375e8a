"""Verifies that a log is the one originally written, before it is used: recomputes its chain hashes.

A chain hash covers the one before it, and the rows contain both. So ranges of positions are verified in parallel, each
starting from the chain hash at the end of the range before it. If every range is valid, the whole chain is. The driver
receives only one hash per range.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import pyarrow as pa
from pyspark.sql import functions as f

from annals.projections.entities.rebuild import RebuildDiverged
from annals.projections.log.table_rows import LogTableRow
from annals.projections.segments.verify_chain import ChainVerifier
from annals.spark_projections.arrow_batches import Batches, record_batch, spark_columns
from annals.spark_projections.log_schema import LogHead

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Positions per range.
RANGE_SIZE: Final = 10_000

_FINDING_SCHEMA: Final = pa.schema([("position", pa.int64()), ("what", pa.string()), ("file", pa.string())])
_RANGE_COLUMN: Final = "range"
_FILE_COLUMN: Final = "file"


class UnverifiedLog(RebuildDiverged):
    """A log is not the one originally written; the message says where it differs."""

    @classmethod
    def at_position(cls, position: int, problem: str, file: str = "") -> Self:
        """The error for a problem at a position."""
        location = f"{file}, " if file else ""
        return cls(f"{location}position {position}: {problem}")


class ChainAnchors(NamedTuple):
    """External values to compare a log with, because anyone who changes a log can recompute its chain.

    registry: returns the registry's chain hash, in hex, where an interaction ends at a position, else None. head: a log
    head that was noted elsewhere.
    """

    registry: Callable[[int], str | None] | None = None
    head: LogHead | None = None


class _RangeBounds(NamedTuple):
    """The log heads at which a range must begin and end, according to the rows around it."""

    start: LogHead
    end: LogHead


#: The log head before the first event.
LOG_START: Final = LogHead(0, ChainVerifier().chain.hex())


def verify_log(
    log: DataFrame,
    anchors: ChainAnchors | None = None,
    in_files: bool = False,
    size: int = RANGE_SIZE,
    start: LogHead = LOG_START,
) -> LogHead:
    """The end of a log, after verifying that every event is the one originally written.

    log: rows of `annals.projections.log.table_rows`, whole interactions, in any order. in_files: errors name the file,
    for logs in files that users know. size: positions per range. start: the log head before the rows. Reads the log
    twice, the first time without its states.
    Raises: UnverifiedLog with the first position that differs.
    """
    anchors = anchors or ChainAnchors()
    ranged_log = log.withColumn(_RANGE_COLUMN, f.coalesce(f.col("last") - f.col("last") % size, f.lit(0)))
    bounds = _range_bounds(ranged_log, start)
    range_ends = [start, *(range_bounds.end for range_bounds in bounds.values())]
    _check_ranges(ranged_log.withColumn(_FILE_COLUMN, file_name_column() if in_files else f.lit("")), bounds)
    if anchors.registry is not None:
        _check_registry(log, range_ends, anchors.registry)
    if anchors.head is not None:
        _check_head(log, range_ends[-1], anchors.head)
    return range_ends[-1]


def _range_bounds(ranged_log: DataFrame, start: LogHead) -> dict[int, _RangeBounds]:
    """The bounds of each range by its key, in order."""
    end_position = f.when(f.col("position") == f.col("last"), f.col("last"))
    range_rows = (
        ranged_log.groupBy(_RANGE_COLUMN)
        .agg(f.max(end_position), f.lower(f.hex(f.max_by("chain", end_position))))
        .collect()
    )
    bounds, previous = dict[int, _RangeBounds](), start
    for key, last, chain in sorted(range_rows, key=itemgetter(0)):
        current = previous if last is None else LogHead(last, chain)
        bounds[key] = _RangeBounds(previous, current)
        previous = current
    return bounds


def _check_ranges(ranged_log: DataFrame, bounds: dict[int, _RangeBounds]) -> None:
    """Raises: UnverifiedLog with the first position that does not continue the log before it."""
    sorted_log = ranged_log.repartition(_RANGE_COLUMN).sortWithinPartitions(_RANGE_COLUMN, "position")
    findings = (
        sorted_log.mapInArrow(partial(_findings, bounds), spark_columns(_FINDING_SCHEMA)).orderBy("position").limit(1)
    )
    for position, problem, file in findings.collect():
        raise UnverifiedLog.at_position(position, problem, file)


def _findings(bounds: dict[int, _RangeBounds], batches: Batches) -> Batches:
    rows = (row for batch in batches for row in _rows(batch))
    findings = [
        finding
        for key, range_rows in groupby(rows, itemgetter(0))
        for finding in _first_finding(bounds[key], range_rows)
    ]
    yield record_batch(findings, _FINDING_SCHEMA)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[int, str, LogTableRow]]:
    """The rows of a batch, each with the key of its range and the name of its file."""
    columns = (batch.column(name).to_pylist() for name in LogTableRow._fields)
    keys, files = (batch.column(name).to_pylist() for name in (_RANGE_COLUMN, _FILE_COLUMN))
    yield from zip(keys, files, map(LogTableRow, *columns), strict=True)


def _first_finding(
    bounds: _RangeBounds, rows: Iterable[tuple[int, str, LogTableRow]]
) -> Iterator[tuple[int, str, str]]:
    """Position, reason and file of the first problem in a range; later problems may be consequences of it."""
    links, file = ChainVerifier(bounds.start.position, bytes.fromhex(bounds.start.chain)), ""
    for _, file, row in rows:
        if None in row:
            yield links.position + 1, "a column has no value", file
            return
        if finding := links.check_row(row):
            yield finding.position, finding.text, file
            return
    if links.position != links.last or links.last != bounds.end.position:
        yield links.position + 1, "the interaction before this position is not whole", file


def _check_registry(log: DataFrame, range_ends: Sequence[LogHead], registry: Callable[[int], str | None]) -> None:
    def differs(end: LogHead) -> bool:
        return end.position > 0 and registry(end.position) != end.chain

    if not differs(range_ends[-1]):
        return
    # A chain hash covers everything before it, so all interactions after the first different one differ too.
    range_index = bisect_left(range_ends, True, key=differs)
    end_rows = _interaction_ends(log).where(
        f.col("position").between(range_ends[range_index - 1].position + 1, range_ends[range_index].position)
    )
    interaction_heads = sorted(LogHead(*row) for row in end_rows.collect())
    first_different = bisect_left(interaction_heads, True, key=differs)
    raise UnverifiedLog.at_position(
        interaction_heads[first_different - 1].position + 1
        if first_different
        else range_ends[range_index - 1].position + 1,
        "the source has another log than this registry from this interaction on",
    )


def _check_head(log: DataFrame, end: LogHead, head: LogHead) -> None:
    if head.position > end.position:
        raise UnverifiedLog.at_position(end.position, f"the source ends before position {head.position} of --head")
    end_rows = _interaction_ends(log).where(f.col("position") == head.position).collect()
    if not end_rows and head.position:
        raise UnverifiedLog.at_position(head.position, "no interaction ends at the position of --head")
    chain = end_rows[0].chain if end_rows else LOG_START.chain
    if chain != head.chain:
        raise UnverifiedLog.at_position(head.position, f"the chain hash is {chain}, and not that of --head")


def _interaction_ends(log: DataFrame) -> DataFrame:
    """The log heads of all interactions, as columns of `LogHead`."""
    last_rows = log.where(f.col("position") == f.col("last"))
    return last_rows.select("position", f.lower(f.hex("chain")).alias("chain"))


def file_name_column() -> Column:
    """The name of the file from which a row is read, without its folder."""
    return f.regexp_extract(f.input_file_name(), "[^/]*$", 0)

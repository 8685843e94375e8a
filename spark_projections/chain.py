"""A log shown to be what was once written, before anything is made of it: its chain hashes are computed again.

A chain hash is over the one before it, and the rows name both. So a log is divided into ranges of positions that are
checked side by side, each from the chain hash at which the range before it ends. Where every range holds, the whole
chain does. No more of the log comes to the driver than one hash of each range.
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

from projections.entities.rebuild import Diverged
from projections.logrows import TableRow
from projections.segments.links import Links
from spark_projections.sources.remote import Head

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Positions of one range.
RANGE: Final = 10_000

_COLUMNS: Final = "position bigint, file string, what string"
_FINDINGS: Final = pa.schema([("position", pa.int64()), ("file", pa.string()), ("what", pa.string())])
_KEY: Final = "range"
_FILE: Final = "file"

Batches = Iterable[pa.RecordBatch]


class Unproved(Diverged):
    """A log is not what was once written; the message says where."""

    @classmethod
    def at(cls, position: int, what: str, file: str = "") -> Self:
        """What is wrong, with its place."""
        place = f"{file}, " if file else ""
        return cls(f"{place}position {position}: {what}")


class Trust(NamedTuple):
    """What a log is compared with beyond itself, as whoever changes a log can compute its whole chain again.

    registry: the chain hash, in hex, that the registry has where an interaction ends at a position; None where none
    does. head: one that was noted elsewhere.
    """

    registry: Callable[[int], str | None] | None = None
    head: Head | None = None


class _Bounds(NamedTuple):
    """What a range has to begin and to end with, in the words of the rows around it."""

    begins: Head
    ends: Head


#: Where every log begins.
START: Final = Head(0, Links().chain.hex())


def prove(
    log: DataFrame, trust: Trust | None = None, in_files: bool = False, size: int = RANGE, begins: Head = START
) -> Head:
    """Where a log ends, once every event of it is shown to be the one that was written.

    log: rows of `projections.logrows`, whole interactions, in any order. in_files: they are read from files whose names
    say something to a user. size: positions of one range. begins: the end of what is before them. Goes through the log
    twice, the first time without its states.
    Raises: Unproved with the first position that differs.
    """
    trust = trust or Trust()
    keyed = log.withColumn(_KEY, f.coalesce(f.col("last") - f.col("last") % size, f.lit(0)))
    bounds = _bounds(keyed, begins)
    ends = [begins, *(each.ends for each in bounds.values())]
    _hold(keyed.withColumn(_FILE, file_name() if in_files else f.lit("")), bounds)
    if trust.registry is not None:
        _same_as_registry(log, ends, trust.registry)
    if trust.head is not None:
        _meets(log, ends[-1], trust.head)
    return ends[-1]


def _bounds(keyed: DataFrame, begins: Head) -> dict[int, _Bounds]:
    """Those of each range, by its key, in order."""
    end = f.when(f.col("position") == f.col("last"), f.col("last"))
    found = keyed.groupBy(_KEY).agg(f.max(end), f.lower(f.hex(f.max_by("chain", end)))).collect()
    bounds, before = dict[int, _Bounds](), begins
    for key, last, chain in sorted(found, key=itemgetter(0)):
        after = before if last is None else Head(last, chain)
        bounds[key] = _Bounds(before, after)
        before = after
    return bounds


def _hold(keyed: DataFrame, bounds: dict[int, _Bounds]) -> None:
    """Raises: Unproved with the first position that does not follow from what is before it."""
    ordered = keyed.repartition(_KEY).sortWithinPartitions(_KEY, "position")
    found = ordered.mapInArrow(partial(_findings, bounds), _COLUMNS).orderBy("position").limit(1).collect()
    for position, file, what in found:
        raise Unproved.at(position, what, file)


def _findings(bounds: dict[int, _Bounds], batches: Batches) -> Batches:
    rows = (row for batch in batches for row in _rows(batch))
    found = [each for key, some in groupby(rows, itemgetter(0)) for each in _first(bounds[key], some)]
    yield pa.RecordBatch.from_pylist(
        [{"position": position, "file": file, "what": what} for position, what, file in found], _FINDINGS
    )


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[int, str, TableRow]]:
    """The rows of a batch, each with the key of its range and the name of its file."""
    columns = (batch.column(name).to_pylist() for name in TableRow._fields)
    keys, files = (batch.column(name).to_pylist() for name in (_KEY, _FILE))
    yield from zip(keys, files, map(TableRow, *columns), strict=True)


def _first(bounds: _Bounds, rows: Iterable[tuple[int, str, TableRow]]) -> Iterator[tuple[int, str, str]]:
    """Position, reason and file of the first thing that is wrong with a range: all that follows may come of it."""
    links, file = Links(bounds.begins.position, bytes.fromhex(bounds.begins.chain)), ""
    for _, file, row in rows:
        if None in row:
            yield links.position + 1, "a column has no value", file
            return
        if finding := links.take(row):
            yield finding.position, finding.what, file
            return
    if links.position != links.last or links.last != bounds.ends.position:
        yield links.position + 1, "the interaction before this position is not whole", file


def _same_as_registry(log: DataFrame, ends: Sequence[Head], registry: Callable[[int], str | None]) -> None:
    def differs(end: Head) -> bool:
        return end.position > 0 and registry(end.position) != end.chain

    if not differs(ends[-1]):
        return
    # A chain hash is over all that was before, so from the first interaction that differs on all of them do.
    range = bisect_left(ends, True, key=differs)
    some = _ended(log).where(f.col("position").between(ends[range - 1].position + 1, ends[range].position))
    within = sorted(Head(*row) for row in some.collect())
    first = bisect_left(within, True, key=differs)
    raise Unproved.at(
        within[first - 1].position + 1 if first else ends[range - 1].position + 1,
        "the source has another log than this registry from this interaction on",
    )


def _meets(log: DataFrame, end: Head, head: Head) -> None:
    if head.position > end.position:
        raise Unproved.at(end.position, f"the source ends before position {head.position} of --head")
    found = _ended(log).where(f.col("position") == head.position).collect()
    if not found and head.position:
        raise Unproved.at(head.position, "no interaction ends at the position of --head")
    chain = found[0].chain if found else START.chain
    if chain != head.chain:
        raise Unproved.at(head.position, f"the chain hash is {chain}, and not that of --head")


def _ended(log: DataFrame) -> DataFrame:
    """Where interactions end, in the words of `Head`."""
    ended = log.where(f.col("position") == f.col("last"))
    return ended.select("position", f.lower(f.hex("chain")).alias("chain"))


def file_name() -> Column:
    """The name of the file that a row is read from, without its folder."""
    return f.regexp_extract(f.input_file_name(), "[^/]*$", 0)

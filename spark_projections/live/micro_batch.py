"""Applies one micro-batch of the log to the live tables, exactly once even if Spark repeats it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as f

from spark_projections.analysis.changes import changes
from spark_projections.live.folder import CHANGES, ENTITIES, HELD_EVENTS, STATES, LiveTableFolder
from spark_projections.live.manifest import LiveTablesError, Manifest, Run
from spark_projections.live.runs import LARGE_RUN, entity_rows_of, last_events, live_rows, newest_rows, split_runs
from spark_projections.log_schema import LogHead
from spark_projections.sources.kafka import first_missing
from spark_projections.verify_log import LOG_START, verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Seconds for which readers may still read replaced files.
KEEP_SECONDS: Final = 3600.0


class MicroBatch(NamedTuple):
    """A micro-batch. query: id of the stream, stored in its checkpoint. number: of the batch in the stream."""

    rows: DataFrame
    query: str
    number: int


def apply_batch(folder: LiveTableFolder, batch: MicroBatch, whole: bool, keep: float = KEEP_SECONDS) -> Manifest:
    """The current manifest after the tables contain the batch.

    The tables' position shows what they contain, so repeating a batch, as a whole or in part, adds nothing. whole: the
    batch ends with a whole interaction; otherwise the events after a gap are held back until the gap closes.
    Raises: LiveTablesError; UnverifiedLog for events that are not the ones originally written.
    """
    before = folder.newest()
    if _is_applied(folder, before, batch):
        return before
    held = folder.read(before.held, batch.rows)
    had = batch.rows.where(f.col("position") >= before.position).unionByName(held)
    seen = had.dropDuplicates(["position"]).persist()
    try:
        _check_same_log(seen, before)
        new = seen.where(f.col("position") > before.position)
        gap = None if whole else first_missing(new, before.position)
        ready = new if gap is None else new.where(f.col("last") < gap)
        late = () if gap is None else folder.write(HELD_EVENTS, new.where(f.col("last") >= gap), 1, "position")
        after = _advance(folder, before.model_copy(update={"held": late}), ready)
    finally:
        seen.unpersist()
    after = after.model_copy(update={"query": batch.query, "batch": batch.number})
    after = after.next_after(before, time.time(), keep)
    folder.commit(after)
    folder.remove_retired(before, after)
    return after


def _is_applied(folder: LiveTableFolder, before: Manifest, batch: MicroBatch) -> bool:
    """Whether the tables contain the batch. Raises: LiveTablesError for lost earlier batches, or another stream."""
    if before.query == batch.query:
        if batch.number > before.batch + 1:
            raise LiveTablesError(
                f"{folder.uri} ends with batch {before.batch} but the checkpoint goes on with {batch.number}: the"
                " batches between are lost; begin with a new checkpoint"
            )
        return batch.number <= before.batch
    if batch.number:
        raise LiveTablesError(
            f"{folder.uri} is not written by the stream of this checkpoint, which is at batch {batch.number};"
            " begin with a new checkpoint"
        )
    return False


def _check_same_log(seen: DataFrame, before: Manifest) -> None:
    end = seen.where((f.col("position") == before.position) & (f.col("chain") != f.unhex(f.lit(before.chain))))
    if end.count():
        raise LiveTablesError(f"this log is not the one that the tables have up to position {before.position}")


def _advance(folder: LiveTableFolder, before: Manifest, ready: DataFrame) -> Manifest:
    """The manifest after further whole interactions.

    Raises: UnverifiedLog where their hashes do not continue the chain.
    """
    begins = LogHead(before.position, before.chain) if before.position else LOG_START
    end = verify_log(ready, begins=begins)
    if end == begins:
        return before
    known = folder.read(before.states, ready).unionByName(ready)
    told = changes(ready, known)
    last = last_events(ready).persist()
    try:
        return before.model_copy(
            update={
                "position": end.position,
                "chain": end.chain,
                "states": _merge_states(folder, before.states, last),
                "entities": _merge_entities(folder, before.entities, entity_rows_of(last)),
                "changes": _merge_changes(folder, before.changes, told),
            }
        )
    finally:
        last.unpersist()


def _merge_states(folder: LiveTableFolder, runs: tuple[Run, ...], last: DataFrame) -> tuple[Run, ...]:
    count = last.count()
    stay, taken = split_runs(runs, count)
    merged = last_events(folder.read(taken, last).unionByName(last), whole=not stay)
    return stay + folder.write(STATES, merged, count + _rows(taken), "stream")


def _merge_entities(folder: LiveTableFolder, runs: tuple[Run, ...], rows: DataFrame) -> tuple[Run, ...]:
    rows = rows.persist()
    try:
        count = rows.count()
        stay, taken = split_runs(runs, count)
        merged = newest_rows(folder.read(taken, rows).unionByName(rows))
        return stay + folder.write(ENTITIES, merged if stay else live_rows(merged), count + _rows(taken), "xid")
    finally:
        rows.unpersist()


def _merge_changes(folder: LiveTableFolder, runs: tuple[Run, ...], told: DataFrame) -> tuple[Run, ...]:
    told = told.persist()
    try:
        count = told.count()
        stay, taken = split_runs(runs, count, LARGE_RUN)
        return stay + folder.write(
            CHANGES, folder.read(taken, told).unionByName(told), count + _rows(taken), "position"
        )
    finally:
        told.unpersist()


def _rows(runs: tuple[Run, ...]) -> int:
    return sum(run.rows for run in runs)

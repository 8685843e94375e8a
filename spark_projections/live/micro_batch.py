"""Applies one micro-batch of the log to the live tables, exactly once even if Spark repeats it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as f

from annals.spark_projections.analysis.changes import changes
from annals.spark_projections.live.folder import CHANGES, ENTITIES, HELD_EVENTS, STATES, LiveTableFolder
from annals.spark_projections.live.manifest import LiveTablesError, Manifest, Run
from annals.spark_projections.live.runs import (
    LARGE_RUN,
    entity_rows_of,
    last_events,
    live_rows,
    newest_rows,
    split_runs,
)
from annals.spark_projections.log_schema import LogHead
from annals.spark_projections.sources.kafka import first_missing
from annals.spark_projections.verify_log import LOG_START, verify_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Seconds for which readers may still read replaced files.
KEEP_SECONDS: Final = 3600.0


class MicroBatch(NamedTuple):
    """A micro-batch. query: id of the stream, stored in its checkpoint. number: of the batch in the stream."""

    rows: DataFrame
    query: str
    number: int


def apply_batch(
    folder: LiveTableFolder, batch: MicroBatch, whole_interactions_only: bool, keep_seconds: float = KEEP_SECONDS
) -> Manifest:
    """The current manifest after the tables contain the batch.

    The tables' position shows what they contain, so repeating a batch, as a whole or in part, adds nothing.
    whole_interactions_only: the batch ends with a whole interaction; otherwise the events after a gap are held back
    until the gap closes.
    Raises: LiveTablesError; UnverifiedLog for events that are not the ones originally written.
    """
    previous = folder.newest_manifest()
    if _is_applied(folder, previous, batch):
        return previous
    held_events = folder.read(previous.held, batch.rows)
    received = batch.rows.where(f.col("position") >= previous.position).unionByName(held_events)
    distinct_events = received.dropDuplicates(["position"]).persist()
    try:
        _check_same_log(distinct_events, previous)
        new_events = distinct_events.where(f.col("position") > previous.position)
        first_gap = None if whole_interactions_only else first_missing(new_events, previous.position)
        complete = new_events if first_gap is None else new_events.where(f.col("last") < first_gap)
        held_runs = (
            ()
            if first_gap is None
            else folder.write(HELD_EVENTS, new_events.where(f.col("last") >= first_gap), 1, "position")
        )
        current = _next_manifest(folder, previous.model_copy(update={"held": held_runs}), complete)
    finally:
        distinct_events.unpersist()
    current = current.model_copy(update={"query": batch.query, "batch": batch.number})
    current = current.next_after(previous, time.time(), keep_seconds)
    folder.commit(current)
    folder.remove_retired(previous, current)
    return current


def _is_applied(folder: LiveTableFolder, previous: Manifest, batch: MicroBatch) -> bool:
    """Whether the tables contain the batch. Raises: LiveTablesError for lost earlier batches, or another stream."""
    if previous.query == batch.query:
        if batch.number > previous.batch + 1:
            raise LiveTablesError(
                f"{folder.uri} ends with batch {previous.batch} but the checkpoint goes on with {batch.number}: the"
                " batches between are lost; begin with a new checkpoint"
            )
        return batch.number <= previous.batch
    if batch.number:
        raise LiveTablesError(
            f"{folder.uri} is not written by the stream of this checkpoint, which is at batch {batch.number};"
            " begin with a new checkpoint"
        )
    return False


def _check_same_log(events: DataFrame, previous: Manifest) -> None:
    mismatched_end = events.where(
        (f.col("position") == previous.position) & (f.col("chain") != f.unhex(f.lit(previous.chain)))
    )
    if mismatched_end.count():
        raise LiveTablesError(f"this log is not the one that the tables have up to position {previous.position}")


def _next_manifest(folder: LiveTableFolder, previous: Manifest, complete: DataFrame) -> Manifest:
    """The manifest after further whole interactions.

    Raises: UnverifiedLog where their hashes do not continue the chain.
    """
    start = LogHead(previous.position, previous.chain) if previous.position else LOG_START
    end = verify_log(complete, start=start)
    if end == start:
        return previous
    known_states = folder.read(previous.states, complete).unionByName(complete)
    change_rows = changes(complete, known_states)
    newest_events = last_events(complete).persist()
    try:
        return previous.model_copy(
            update={
                "position": end.position,
                "chain": end.chain,
                "states": _merge_states(folder, previous.states, newest_events),
                "entities": _merge_entities(folder, previous.entities, entity_rows_of(newest_events)),
                "changes": _merge_changes(folder, previous.changes, change_rows),
            }
        )
    finally:
        newest_events.unpersist()


def _merge_states(folder: LiveTableFolder, runs: tuple[Run, ...], newest_events: DataFrame) -> tuple[Run, ...]:
    count = newest_events.count()
    unchanged_runs, absorbed_runs = split_runs(runs, count)
    merged = last_events(
        folder.read(absorbed_runs, newest_events).unionByName(newest_events), is_complete_log=not unchanged_runs
    )
    return unchanged_runs + folder.write(STATES, merged, count + _row_count(absorbed_runs), "stream")


def _merge_entities(folder: LiveTableFolder, runs: tuple[Run, ...], rows: DataFrame) -> tuple[Run, ...]:
    rows = rows.persist()
    try:
        count = rows.count()
        unchanged_runs, absorbed_runs = split_runs(runs, count)
        merged = newest_rows(folder.read(absorbed_runs, rows).unionByName(rows))
        return unchanged_runs + folder.write(
            ENTITIES, merged if unchanged_runs else live_rows(merged), count + _row_count(absorbed_runs), "xid"
        )
    finally:
        rows.unpersist()


def _merge_changes(folder: LiveTableFolder, runs: tuple[Run, ...], change_rows: DataFrame) -> tuple[Run, ...]:
    change_rows = change_rows.persist()
    try:
        count = change_rows.count()
        unchanged_runs, absorbed_runs = split_runs(runs, count, LARGE_RUN)
        return unchanged_runs + folder.write(
            CHANGES,
            folder.read(absorbed_runs, change_rows).unionByName(change_rows),
            count + _row_count(absorbed_runs),
            "position",
        )
    finally:
        change_rows.unpersist()


def _row_count(runs: tuple[Run, ...]) -> int:
    return sum(run.rows for run in runs)

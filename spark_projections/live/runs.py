"""Merging of runs: a new run absorbs the preceding ones that are not larger than itself.

So n rows are in about log2(n) runs, each row is written about log2(n) times, and no separate compaction is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from annals.domain.registry.events import EntityDeleted
from annals.spark_projections.analysis.events import events_with_state, is_outside_tree
from annals.spark_projections.analysis.states import entities

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from annals.spark_projections.live.manifest import Run

#: A run of `changes` with so many rows is never merged again.
LARGE_RUN: Final = 1_000_000

_DELETED_PREFIX: Final = f"{EntityDeleted.TOPIC.partition(':')[0]}:"


def split_runs(
    runs: tuple[Run, ...], rows: int, max_rows: int | None = None
) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs that stay, and those that a new run of `rows` rows absorbs. max_rows: runs of that size always stay."""
    split_index = len(runs)
    while (
        split_index
        and runs[split_index - 1].rows <= rows
        and (max_rows is None or runs[split_index - 1].rows < max_rows)
    ):
        split_index -= 1
        rows += runs[split_index].rows
    return runs[:split_index], runs[split_index:]


def last_events(log: DataFrame, is_complete_log: bool = False) -> DataFrame:
    """The last event of each stream in a log.

    is_complete_log: no older events exist, so deleted entities are left out.
    """
    last_event = f.max_by(f.struct(*log.columns), "position").alias("last")
    newest_events = log.groupBy("stream").agg(last_event).select("last.*")
    return newest_events.where(~f.col("topic").startswith(_DELETED_PREFIX)) if is_complete_log else newest_events


def entity_rows_of(states: DataFrame) -> DataFrame:
    """Rows of `analysis.entities` for last events of streams; a deleted entity has a row of `xid` and `since` only."""
    deleted = states.where(f.col("topic").startswith(_DELETED_PREFIX) & ~is_outside_tree("stream"))
    return entities(states).unionByName(
        events_with_state(deleted).select("xid", f.col("position").alias("since")), allowMissingColumns=True
    )


def newest_rows(rows: DataFrame) -> DataFrame:
    """The last row of each entity among rows of `entity_rows_of`."""
    last_row = f.max_by(f.struct(*rows.columns), "since").alias("last")
    return rows.groupBy(f.lower("xid")).agg(last_row).select("last.*")


def live_rows(rows: DataFrame) -> DataFrame:
    """The rows without those of deleted entities."""
    return rows.where(f.col("type").isNotNull())

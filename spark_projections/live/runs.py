"""How runs grow: a new one takes in those before it that are not larger than itself.

So there are about as many as the number of rows has binary digits, each row is written about as often, and nothing has
to be compacted besides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from domain.registry.events import EntityDeleted
from spark_projections.analysis.events import events_with_state, is_outside_tree
from spark_projections.analysis.states import entities

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_projections.live.manifest import Run

#: Rows of a run of `changes` that is taken in by no other.
LARGE_RUN: Final = 1_000_000

_DELETED: Final = f"{EntityDeleted.TOPIC.partition(':')[0]}:"


def split_runs(runs: tuple[Run, ...], rows: int, largest: int | None = None) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    """The runs that stay, and those that a new one of so many rows takes in. largest: rows of one that always stays."""
    taken = len(runs)
    while taken and runs[taken - 1].rows <= rows and (largest is None or runs[taken - 1].rows < largest):
        taken -= 1
        rows += runs[taken].rows
    return runs[:taken], runs[taken:]


def last_events(log: DataFrame, whole: bool = False) -> DataFrame:
    """The last event of each stream in a log. whole: nothing older is anywhere, so those of deleted entities go."""
    last = f.max_by(f.struct(*log.columns), "position").alias("last")
    found = log.groupBy("stream").agg(last).select("last.*")
    return found.where(~f.col("topic").startswith(_DELETED)) if whole else found


def entity_rows_of(states: DataFrame) -> DataFrame:
    """Rows of `analysis.entities` by last events of streams; of a deleted entity one with `xid` and `since` alone."""
    deleted = states.where(f.col("topic").startswith(_DELETED) & ~is_outside_tree("stream"))
    return entities(states).unionByName(
        events_with_state(deleted).select("xid", f.col("position").alias("since")), allowMissingColumns=True
    )


def newest_rows(rows: DataFrame) -> DataFrame:
    """The last row of each entity among those of `rows_of`."""
    last = f.max_by(f.struct(*rows.columns), "since").alias("last")
    return rows.groupBy(f.lower("xid")).agg(last).select("last.*")


def live_rows(rows: DataFrame) -> DataFrame:
    """Without those of deleted entities."""
    return rows.where(f.col("type").isNotNull())

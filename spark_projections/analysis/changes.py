"""The attribute changes of each event, from the states before and after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f

from annals.domain.registry.events import EntityEvent
from annals.domain.values.json_text import dumps
from annals.projections.audit.entity_diff import ABSENT, diff_entity, unless_deleted
from annals.projections.log.table_rows import event_of
from annals.spark_projections.analysis.events import events_with_state
from annals.spark_projections.arrow_batches import map_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Columns of `events` that each row repeats.
_EVENT_COLUMNS: Final = (
    *("position", "time", "xid", "type", "groupxid", "resourcexid", "kind"),
    *("caller", "command", "xregcorrelationid"),
)
_STATE_COLUMNS: Final = ("topic", "state", "before_topic", "before_state")
_VALUE_SCHEMA: Final = pa.schema([(name, pa.string()) for name in ("of", "path", "before", "after")])


def changes(log: DataFrame, earlier_log: DataFrame | None = None) -> DataFrame:
    """One row for each attribute and each document that an event changed; `before` and `after` are JSON text.

    The creation or deletion of an entity changes all attributes that it has then. earlier_log: rows that contain the
    predecessor of each event, for a log that does not start at the beginning of its streams.
    """
    return changed_values(event_pairs(log, earlier_log))


def event_pairs(log: DataFrame, earlier_log: DataFrame | None = None) -> DataFrame:
    """Each event with its predecessor in the stream. earlier_log: see `changes`."""
    # A join by revision, because a window over whole states would collect a busy stream on one executor.
    events = events_with_state(log)
    previous_events = (events if earlier_log is None else events_with_state(earlier_log)).select(
        "stream",
        (f.col("revision") + 1).alias("revision"),
        f.col("topic").alias("before_topic"),
        f.col("state").alias("before_state"),
    )
    return events.join(previous_events, ["stream", "revision"], "left").select(
        "stream", "revision", *_EVENT_COLUMNS, *_STATE_COLUMNS
    )


def changed_values(event_pairs: DataFrame, *others: str) -> DataFrame:
    """`changes` of some `event_pairs`, in their order. others: more of their columns that each row repeats."""
    return map_rows(event_pairs, (*_EVENT_COLUMNS, *others), _STATE_COLUMNS, _changes_of_event, _VALUE_SCHEMA)


def _changes_of_event(
    topic: str, state: str, before_topic: str | None, before_state: str
) -> Iterator[tuple[str | None, ...]]:
    after = unless_deleted(event_of(topic, 2, state))
    before = unless_deleted(event_of(before_topic, 1, before_state)) if before_topic else None
    return _changed_values(before, after)


def _changed_values(before: EntityEvent | None, after: EntityEvent | None) -> Iterator[tuple[str | None, ...]]:
    for difference in diff_entity(before, after):
        for value in difference.values:
            yield "attribute", value.path, _json_text(value.before), _json_text(value.after)
        if difference.documents[0] != difference.documents[1]:
            yield "document", "", *map(_json_text, (value or ABSENT for value in difference.documents))


def _json_text(value: Any) -> str | None:
    return None if value is ABSENT else dumps(value).decode()

"""The rows of entities that the read model has, computed from the whole log.

A row is a function of one event, and ends where the next revision of its stream begins. So each event is joined with
its successor, which spreads evenly even if one stream has many events. The function of the inline projection then turns
each event into a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f

from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.projections.entities.rows import EntityRow, EntityTimes, entity_row, own_times
from annals.projections.log.table_rows import event_of
from annals.spark_projections.arrow_batches import map_rows
from annals.spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBER_COLUMNS: Final = ("epoch", "since", "born", "meta")
#: The columns of `EntityRow`, and the entity's own times, which the tables of the read model do not have.
_ROW_SCHEMA: Final = pa.schema(
    [
        *(pa.field(name, pa.int64() if name in _NUMBER_COLUMNS else pa.string()) for name in EntityRow._fields),
        *(pa.field(name, pa.string()) for name in EntityTimes._fields),
    ]
)


def rows_of_events(events: DataFrame, kept: Sequence[str] = ()) -> DataFrame:
    """The rows of `live_events` with the entity's own times, `until`, and some other columns of the events."""
    return map_rows(events, ["until", *kept], ("topic", "revision", "state", "position"), _row_of_event, _ROW_SCHEMA)


def live_events(log: DataFrame, *others: str) -> DataFrame:
    """The events that leave an entity alive, each with the position that ends its row, `until`, null if none does.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    others: more columns of the events. The event that ends the row has them as `until_` and the name.
    """
    columns, log = ("position", "stream", "revision", "topic", "state"), upcast_log(log)
    successors = log.select(
        *("stream", (f.col("revision") - 1).alias("revision"), f.col("position").alias("until")),
        *(f.col(name).alias(f"until_{name}") for name in others),
    )
    events = log.select(*columns, *(name for name in others if name not in columns))
    return events.join(successors, ["stream", "revision"], "left").where(f.col("topic") != EntityDeleted.TOPIC)


def _row_of_event(topic: str, revision: int, state: str, position: int) -> Iterator[tuple[Any, ...]]:
    event = event_of(topic, revision, state)
    if not xids.is_outside_tree(event.stream):
        yield (*entity_row(event, position), *own_times(event.type, event.attributes))

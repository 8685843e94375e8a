"""The tables of the REST read model, computed from the whole log.

A row of the read model is a function of one event, and ends where the next revision of its stream begins. So each event
is joined with its successor, which spreads evenly even if one stream has many events. The function of the inline
projection then turns each event into a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f

from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.entities.leaves import UNINDEXED_TYPES, leaves
from annals.projections.entities.rows import (
    COMPRESSED_ATTRIBUTES,
    ROW_COLUMNS,
    EntityRow,
    EntityTimes,
    decompress_attributes,
    entity_row,
    own_times,
    row_values,
)
from annals.projections.log.table_rows import event_of
from annals.spark_projections.arrow_batches import Batches, map_rows, record_batch, spark_columns
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
#: The columns of the tables, and `until`.
_STORED_SCHEMA: Final = pa.schema(
    [
        *(
            _ROW_SCHEMA.field(name) if name in EntityRow._fields else pa.field(name, pa.binary())
            for name in ROW_COLUMNS
        ),
        pa.field("until", pa.int64()),
    ]
)
_LEAF_SCHEMA: Final = pa.schema(
    [
        pa.field("type", pa.string()),
        pa.field("path", pa.string()),
        pa.field("value", pa.binary()),
        pa.field("id_key", pa.string()),
    ]
)


def entity_rows(log: DataFrame) -> DataFrame:
    """All rows of the current state and the history at the end of a log, each with the entity's own times.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    """
    return rows_of_events(live_events(log))


def rows_of_events(events: DataFrame, kept: Sequence[str] = ()) -> DataFrame:
    """The rows of `live_events`, with `until` and some other columns of the events."""
    return map_rows(events, ["until", *kept], ("topic", "revision", "state", "position"), _row_of_event, _ROW_SCHEMA)


def ordered_stored_rows(log: DataFrame) -> DataFrame:
    """The rows of the tables as the database has them, in the order of their keys, within and across partitions."""
    # Sorted before events become rows, because Spark computes the input of a range partitioning twice. The key is a
    # column, because Spark would evaluate an expression for every comparison of two rows.
    events_with_key = live_events(log).withColumn("key", f.translate("stream", "/", "!"))
    events_in_order = events_with_key.repartitionByRange("key", "position").sortWithinPartitions("key", "position")
    return events_in_order.drop("key").mapInArrow(_to_stored_rows, spark_columns(_STORED_SCHEMA))


def live_events(log: DataFrame, *others: str) -> DataFrame:
    """The events that leave an entity alive, each with the position that ends its row, `until`, null if none does.

    others: more columns of the events. The event that ends the row has them as `until_` and the name.
    """
    columns, log = ("position", "stream", "revision", "topic", "state"), upcast_log(log)
    successors = log.select(
        *("stream", (f.col("revision") - 1).alias("revision"), f.col("position").alias("until")),
        *(f.col(name).alias(f"until_{name}") for name in others),
    )
    events = log.select(*columns, *(name for name in others if name not in columns))
    return events.join(successors, ["stream", "revision"], "left").where(f.col("topic") != EntityDeleted.TOPIC)


def events_by_stream(log: DataFrame, partitions: int | None = None) -> DataFrame:
    """The events of each stream in one partition, side by side in their order.

    partitions: their number, where each event is much work; Spark looks at the size of what is sent around only.
    """
    events = upcast_log(log).select("position", "stream", "revision", "topic", "state")
    shuffled = events.repartition(partitions, "stream") if partitions else events.repartition("stream")
    return shuffled.sortWithinPartitions("stream", "revision")


def attribute_rows(rows: DataFrame, max_leaves: int) -> DataFrame:
    """The index leaves of live rows.

    rows: from `ordered_stored_rows`. max_leaves: maximum leaves of one entity in the index.
    """
    live_rows = rows.where(f.col("until").isNull()).where(~f.col("type").isin(*UNINDEXED_TYPES))
    leaf_rows = live_rows.select("id_key", "type", COMPRESSED_ATTRIBUTES).mapInArrow(
        partial(_to_leaves, max_leaves), spark_columns(_LEAF_SCHEMA)
    )
    # In the order of the primary key but for the numbers of paths.
    return leaf_rows.sort("type", "path", "value", "id_key")


def _row_of_event(topic: str, revision: int, state: str, position: int) -> Iterator[tuple[Any, ...]]:
    event = event_of(topic, revision, state)
    if not xids.is_outside_tree(event.stream):
        yield (*entity_row(event, position), *own_times(event.type, event.attributes))


def rows_of_batch(batch: pa.RecordBatch) -> Iterator[tuple[EntityEvent, EntityRow, int | None]]:
    """The events of entities in a batch of `live_events`, each with its row and the position that ends it."""
    columns = [batch.column(name).to_pylist() for name in ("topic", "revision", "state", "position", "until")]
    for topic, revision, state, position, until in zip(*columns, strict=True):
        event = event_of(topic, revision, state)
        if not xids.is_outside_tree(event.stream):
            yield event, entity_row(event, position), until


def _to_stored_rows(batches: Batches) -> Batches:
    for batch in batches:
        yield record_batch([(*row_values(row), until) for _, row, until in rows_of_batch(batch)], _STORED_SCHEMA)


def _to_leaves(max_leaves: int, batches: Batches) -> Batches:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("id_key", "type", COMPRESSED_ATTRIBUTES)]
        rows = [
            (type, path, value, key)
            for key, type, stored in zip(*columns, strict=True)
            for path, value in leaves(loads_trusted(decompress_attributes(stored)), max_leaves).items()
        ]
        yield record_batch(rows, _LEAF_SCHEMA)

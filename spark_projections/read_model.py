"""The tables of the REST read model, worked out from the whole log at once.

A row of the read model is a function of one event, and ends where the next revision of its stream begins. So the events
are joined with their successors, which spreads evenly however often a single stream has changed, and each becomes a row
by the function that the inline projection uses.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f

from domain.registry.events import EntityDeleted
from domain.values import xid as xids
from domain.values.json_text import loads_trusted
from projections.entities.leaves import UNINDEXED_TYPES, leaves
from projections.entities.rows import EntityRow, row
from projections.log.table_rows import event_of
from spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBERS: Final = ("epoch", "since", "born", "meta")
#: What `Row` has, and `until`: the position of the event that replaced it, null for what lives.
_ROWS: Final = pa.schema(
    [
        *(pa.field(name, pa.int64() if name in _NUMBERS else pa.string()) for name in EntityRow._fields),
        pa.field("until", pa.int64()),
    ]
)
_LEAVES: Final = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("tree_key", "path", "type", "text")),
        pa.field("number", pa.float64()),
        pa.field("remainder", pa.string()),
    ]
)
_ROW_COLUMNS: Final = ", ".join(f"{each.name} {'bigint' if each.type == pa.int64() else 'string'}" for each in _ROWS)
_LEAF_COLUMNS: Final = "tree_key string, path string, type string, text string, number double, remainder string"

Batches = Iterable[pa.RecordBatch]


def entity_rows(log: DataFrame) -> DataFrame:
    """Every row that the present and the past of the registry have at the end of a log.

    log: rows of `projections.log.table_rows`, from the first position on without a gap, whole interactions.
    """
    return _rows(_events(log))


def ordered_entity_rows(log: DataFrame) -> DataFrame:
    """The same in the order of the tables' primary keys, from partition to partition."""
    # Before events become rows, as Spark works out what it divides into ranges twice. The key is a column, because an
    # expression would be worked out anew whenever two rows are compared.
    keyed = _events(log).withColumn("key", f.translate("stream", "/", "!"))
    return _rows(keyed.repartitionByRange("key", "position").sortWithinPartitions("key", "position").drop("key"))


def _events(log: DataFrame) -> DataFrame:
    """Those that leave an entity alive, each with the position that ends its row."""
    next = log.select("stream", (f.col("revision") - 1).alias("revision"), f.col("position").alias("until"))
    events = upcast_log(log).select("position", "stream", "revision", "topic", "state")
    return events.join(next, ["stream", "revision"], "left").where(f.col("topic") != EntityDeleted.TOPIC)


def _rows(events: DataFrame) -> DataFrame:
    return events.mapInArrow(_to_rows, _ROW_COLUMNS)


def attribute_rows(rows: DataFrame, most: int) -> DataFrame:
    """The leaves of what lives. rows: as `rows` gives them. most: leaves that the index takes of one entity."""
    living = rows.where(f.col("until").isNull()).where(~f.col("type").isin(*UNINDEXED_TYPES))
    return living.select("tree_key", "type", "attributes").mapInArrow(partial(_to_leaves, most), _LEAF_COLUMNS)


def _to_rows(batches: Batches) -> Batches:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("topic", "revision", "state", "position", "until")]
        made = [
            (*row(event, position), until)
            for topic, revision, state, position, until in zip(*columns, strict=True)
            if not xids.is_outside_tree((event := event_of(topic, revision, state)).stream)
        ]
        yield _batch(made, _ROWS)


def _to_leaves(most: int, batches: Batches) -> Batches:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("tree_key", "type", "attributes")]
        made = [
            (key, path, type, *leaf)
            for key, type, text in zip(*columns, strict=True)
            for path, leaf in sorted(leaves(loads_trusted(text), most).items())
        ]
        yield _batch(made, _LEAVES)


def _batch(made: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*made, strict=True) if made else ((),) * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema
    )

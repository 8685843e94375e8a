"""The log with events of outdated topics upcast to the current ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from annals.projections.log.table_rows import upcast, upcasts
from annals.spark_projections.arrow_batches import Batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def upcast_log(log: DataFrame) -> DataFrame:
    """A log with current topics only, for code that reads `topic` and `state` itself; other columns are unchanged.

    Raises, when it is read: an error of Spark for a damaged event.
    """
    # The upcasters are sent to the executors, which may have been started before these were registered.
    upcasters = upcasts()
    return log.mapInArrow(partial(_upcast_batches, upcasters), log.schema) if upcasters else log


def _upcast_batches(upcasters: Mapping[str, Any], batches: Batches) -> Batches:
    for batch in batches:
        is_outdated = pc.is_in(batch.column("topic"), pa.array(upcasters, pa.string()))
        yield _upcast_batch(upcasters, batch) if pc.any(is_outdated).as_py() else batch


def _upcast_batch(upcasters: Mapping[str, Any], batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [batch.column(name).to_pylist() for name in ("topic", "revision", "state")]
    rows = [
        upcast(topic, revision, state, upcasters) if topic in upcasters else (topic, state)
        for topic, revision, state in zip(*columns, strict=True)
    ]
    for name, values in zip(("topic", "state"), zip(*rows, strict=True), strict=True):
        column_index = batch.schema.get_field_index(name)
        batch = batch.set_column(column_index, batch.schema.field(column_index), pa.array(values, pa.string()))
    return batch

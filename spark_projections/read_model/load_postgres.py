"""Loads the read model into PostgreSQL from Spark's executors, each partition in a transaction of its own.

Spark runs a task again when its executor is lost: `annals.projections.entities.partition_load` loads it once.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine

from annals.projections.entities.partition_load import (
    LoadTarget,
    PartitionTransaction,
    partition_transaction,
)
from annals.projections.entities.tables import ReadModelTables, tables
from annals.spark_projections.arrow_batches import Batches
from annals.spark_projections.read_model.stream_rows import RowBatch, events_by_stream, row_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a task returns: nothing, in a column that Spark wants.
_NO_COLUMNS: Final = "loaded boolean"


def insert(log: DataFrame, events: int, engine: Engine, new_tables: ReadModelTables, max_leaves: int) -> None:
    """Computes and inserts all rows in Spark's executors, which must reach the database at the engine's URL.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    events: their number.
    """
    target = LoadTarget(engine.url.render_as_string(hide_password=False), new_tables.suffix)
    # The images of a stream are then side by side in the tables, as a read of its history wants them.
    streams = events_by_stream(log, events)
    streams.mapInArrow(partial(_insert_streams, target, max_leaves), _NO_COLUMNS).collect()


def _insert_streams(target: LoadTarget, max_leaves: int, batches: Batches) -> Batches:
    with partition_transaction(target, _partition_number()) as transaction:
        if transaction is None:
            deque(batches, maxlen=0)  # Spark wants its input read
        else:
            for rows in row_batches(batches, max_leaves):
                _insert_batch(transaction, tables(target.suffix), rows)
    yield from ()


def _insert_batch(transaction: PartitionTransaction, new_tables: ReadModelTables, batch: RowBatch) -> None:
    for name, rows in batch.rows.items():
        transaction.db.insert(getattr(new_tables, name), rows)
    numbers = transaction.path_numbers.of({*batch.leaves})
    leaves = [(numbers[path], *leaf) for path, of_path in batch.leaves.items() for leaf in of_path]
    transaction.db.insert(new_tables.attribute, leaves)


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    return context.partitionId()

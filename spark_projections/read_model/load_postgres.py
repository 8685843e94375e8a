"""Loads the read model into PostgreSQL from Spark's executors, each partition in a transaction of its own.

Spark runs a task again when its executor is lost: `annals.projections.entities.partition_load` loads it once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine

from annals.projections.database.drivers import Values
from annals.projections.entities.partition_load import LeafRows, LoadTarget, partition_transaction
from annals.projections.entities.references import reference_rows
from annals.projections.entities.rows import row_values
from annals.projections.entities.schema_versions import reference_rows_of
from annals.projections.entities.tables import ReadModelTables, tables
from annals.spark_projections.arrow_batches import Batches
from annals.spark_projections.read_model import computed_rows
from annals.spark_projections.read_model.published_rows import published_rows, schema_version_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a task returns: nothing, in a column that Spark wants.
_NO_COLUMNS: Final = "loaded boolean"


def insert(log: DataFrame, engine: Engine, new_tables: ReadModelTables, max_leaves: int) -> None:
    """Computes and inserts all rows in Spark's executors, which must reach the database at the engine's URL.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    """
    target = LoadTarget(engine.url.render_as_string(hide_password=False), new_tables.suffix)
    # The join in `live_events` leaves the images of a stream side by side, as a read of its history wants them.
    computed_rows.live_events(log).mapInArrow(partial(_insert_entities, target, max_leaves), _NO_COLUMNS).collect()
    published_rows(log).mapInArrow(partial(_insert_publications, target), _NO_COLUMNS).collect()
    schema_version_rows(log).mapInArrow(partial(_insert_schema_versions, target), _NO_COLUMNS).collect()


def _insert_entities(target: LoadTarget, max_leaves: int, batches: Batches) -> Batches:
    own_tables = tables(target.suffix)
    with partition_transaction(target, "entities", _partition_number()) as transaction:
        for batch in batches:
            if transaction is None:
                continue  # Spark wants its input read
            current_rows, history, references, leaf_rows = [], [], list[Values](), LeafRows(max_leaves)
            for event, row, until in computed_rows.rows_of_batch(batch):
                if until is None:
                    current_rows.append(row_values(row))
                    leaf_rows.add(row, event.attributes)
                else:
                    history.append((*row_values(row), until))
                references += reference_rows(row, until)
            transaction.db.insert(own_tables.entity, current_rows)
            transaction.db.insert(own_tables.history, history)
            transaction.db.insert(own_tables.reference, references)
            transaction.db.insert(own_tables.attribute, leaf_rows.numbered(transaction.path_numbers))
    yield from ()


def _insert_publications(target: LoadTarget, batches: Batches) -> Batches:
    with partition_transaction(target, "published", _partition_number()) as transaction:
        for batch in batches:
            if transaction is not None:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                transaction.db.insert(tables(target.suffix).published, rows)
    yield from ()


def _insert_schema_versions(target: LoadTarget, batches: Batches) -> Batches:
    own_tables = tables(target.suffix)
    with partition_transaction(target, "schema_version", _partition_number()) as transaction:
        for batch in batches:
            if transaction is not None:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                transaction.db.insert(own_tables.schema_version, rows)
                references = [reference for row in rows for reference in reference_rows_of(row)]
                transaction.db.insert(own_tables.schema_reference, references)
    yield from ()


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    return context.partitionId()

"""Loads the read model into PostgreSQL from Spark's executors, each partition in a transaction of its own.

Spark runs a task again when its executor is lost: `annals.projections.entities.partition_load` loads it once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final

from sqlalchemy import Engine, Table

from annals.domain.compat.publications import fold_publications
from annals.domain.confluent.schema_versions import fold_schema_versions
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Values
from annals.projections.entities.partition_load import (
    LeafRows,
    LoadTarget,
    PartitionTransaction,
    partition_transaction,
)
from annals.projections.entities.references import reference_rows
from annals.projections.entities.rows import entity_row, publication_row, row_values
from annals.projections.entities.schema_versions import reference_rows_of, schema_version_row
from annals.projections.entities.tables import ReadModelTables, tables
from annals.spark_projections.arrow_batches import Batches
from annals.spark_projections.partitions import partition_count
from annals.spark_projections.read_model import computed_rows
from annals.spark_projections.read_model.published_rows import is_published, read_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a task returns: nothing, in a column that Spark wants.
_NO_COLUMNS: Final = "loaded boolean"
#: States that are inserted together.
_BATCH_ROWS: Final = 5000


def insert(log: DataFrame, events: int, engine: Engine, new_tables: ReadModelTables, max_leaves: int) -> None:
    """Computes and inserts all rows in Spark's executors, which must reach the database at the engine's URL.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    events: their number.
    """
    target = LoadTarget(engine.url.render_as_string(hide_password=False), new_tables.suffix)
    # Each event is sent around and parsed once. The images of a stream are then side by side, as a read of its history
    # wants them. One task has all events of a stream, but not at once in its memory.
    partitions = partition_count(events, log.sparkSession.sparkContext.defaultParallelism)
    streams = computed_rows.events_by_stream(log, partitions)
    streams.mapInArrow(partial(_insert_streams, target, max_leaves), _NO_COLUMNS).collect()


def _insert_streams(target: LoadTarget, max_leaves: int, batches: Batches) -> Batches:
    with partition_transaction(target, _partition_number()) as transaction:
        if transaction is None:
            deque(batches, maxlen=0)  # Spark wants its input read
        else:
            new_rows = _NewRows(transaction, tables(target.suffix), max_leaves)
            for stream, events in groupby(read_events(batches), key=lambda found: found[1].stream):
                new_rows.add(stream, events)
            new_rows.insert()
    yield from ()


class _NewRows:
    """Rows of streams, which are inserted some thousands at a time."""

    def __init__(self, transaction: PartitionTransaction, own_tables: ReadModelTables, max_leaves: int) -> None:
        self._transaction = transaction
        self._tables = own_tables
        self._max_leaves = max_leaves
        self._clear()

    def _clear(self) -> None:
        self._leaves = LeafRows(self._max_leaves)
        self._rows: dict[Table, list[Values]] = {table: [] for table in self._tables}

    def add(self, stream: str, events: Iterable[tuple[int, EntityEvent]]) -> None:
        """Adds the rows of all events of a stream, which come in their order."""
        if xids.is_outside_tree(stream):
            return
        if is_published(stream):
            events = list(events)
            self._add_versions(events)
        for position, event, until in _with_ends(events):
            if not isinstance(event, EntityDeleted):
                self._add_row(event, position, until)

    def _add_row(self, event: EntityEvent, position: int, until: int | None) -> None:
        row = entity_row(event, position)
        if until is None:
            self._rows[self._tables.entity].append(row_values(row))
            self._leaves.add(row, event.attributes)
        else:
            self._rows[self._tables.history].append((*row_values(row), until))
        self._rows[self._tables.reference] += reference_rows(row, until)
        if len(self._rows[self._tables.entity]) + len(self._rows[self._tables.history]) >= _BATCH_ROWS:
            self.insert()

    def _add_versions(self, events: Sequence[tuple[int, EntityEvent]]) -> None:
        """Adds what the legacy APIs and Confluent's look up of a Version."""
        self._rows[self._tables.published] += map(publication_row, fold_publications(events))
        for row in map(schema_version_row, fold_schema_versions(events)):
            self._rows[self._tables.schema_version].append(row)
            self._rows[self._tables.schema_reference] += reference_rows_of(row)

    def insert(self) -> None:
        """Inserts what was added since the last time."""
        self._rows[self._tables.attribute] += self._leaves.numbered(self._transaction.path_numbers)
        for table, rows in self._rows.items():
            self._transaction.db.insert(table, rows)
        self._clear()


def _with_ends(events: Iterable[tuple[int, EntityEvent]]) -> Iterator[tuple[int, EntityEvent, int | None]]:
    """The events of a stream, each with the position of the next one."""
    previous: tuple[int, EntityEvent] | None = None
    for found in events:
        if previous is not None:
            yield (*previous, found[0])
        previous = found
    if previous is not None:
        yield (*previous, None)


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    return context.partitionId()

"""Loads the read model into PostgreSQL from Spark's executors, each partition in a transaction of its own.

Spark runs a task again when its executor is lost, even if its transaction was committed. So each transaction marks its
partition as loaded, in the table of positions, where a rebuild removes the marks with its own position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import Engine

from annals.commands.store.database.engine import open_engine
from annals.projections.database.drivers import Database, Values, database_of
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.index_paths import IndexPaths
from annals.projections.entities.leaves import UNINDEXED_TYPES, leaves
from annals.projections.entities.rows import EntityRow, row_values
from annals.projections.entities.schema_versions import reference_rows_of
from annals.projections.entities.tables import ReadModelTables, tables
from annals.spark_projections.arrow_batches import Batches
from annals.spark_projections.read_model import computed_rows
from annals.spark_projections.read_model.published_rows import published_rows, schema_version_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: What a task returns: nothing, in a column that Spark wants.
_NO_COLUMNS: Final = "loaded boolean"


class LoadTarget(NamedTuple):
    """Where executors insert: the URL of the database and the suffix of the tables."""

    url: str
    suffix: str


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
            current_rows, history, leaf_rows = [], [], _LeafRows(max_leaves)
            for event, row, until in computed_rows.rows_of_batch(batch):
                if until is None:
                    current_rows.append(row_values(row))
                    leaf_rows.add(row, event.attributes)
                else:
                    history.append((*row_values(row), until))
            transaction.db.insert(own_tables.entity, current_rows)
            transaction.db.insert(own_tables.history, history)
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


class _LeafRows:
    """The leaves of some entities, until the numbers of their paths are known."""

    def __init__(self, max_leaves: int) -> None:
        self._max_leaves = max_leaves
        self._rows: list[tuple[str, str, bytes, str]] = []

    def add(self, row: EntityRow, attributes: Mapping[str, Any]) -> None:
        """Adds those of one entity."""
        if row.type not in UNINDEXED_TYPES:
            for path, value in leaves(attributes, self._max_leaves).items():
                self._rows.append((row.type, path, value, row.id_key))

    def numbered(self, path_numbers: _PathNumbers) -> list[Values]:
        """The rows for the table."""
        numbers = path_numbers.of({(type, path) for type, path, _, _ in self._rows})
        return [(numbers[type, path], value, key) for type, path, value, key in self._rows]


class _PathNumbers:
    """The numbers of paths, on which all tasks agree: each new one is committed at once, under a lock."""

    def __init__(self, engine: Engine, target: LoadTarget) -> None:
        self._engine = engine
        self._table = tables(target.suffix).path
        self._paths = IndexPaths(tables(target.suffix))
        self._numbers: dict[tuple[str, str], int] = {}

    def of(self, paths: set[tuple[str, str]]) -> Mapping[tuple[str, str], int]:
        """The numbers of all paths up to now, with these."""
        new_paths: dict[str, list[str]] = {}
        for type, path in paths - self._numbers.keys():
            new_paths.setdefault(type, []).append(path)
        if new_paths:
            with self._engine.begin() as connection:
                connection.exec_driver_sql(f"LOCK TABLE {self._table.name} IN EXCLUSIVE MODE")
                for type, numbers in self._paths.numbers(database_of(connection), new_paths).items():
                    self._numbers.update(((type, path), number) for path, number in numbers.items())
        return self._numbers


class _Transaction(NamedTuple):
    """The transaction of one partition."""

    db: Database
    path_numbers: _PathNumbers


@contextmanager
def partition_transaction(target: LoadTarget, rows: str, partition: int) -> Iterator[_Transaction | None]:
    """A transaction for the rows of one partition; None if an earlier attempt has committed them."""
    # The commit that swaps the tables makes all before it durable.
    engine = open_engine(target.url, durable=False)
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        connection = stack.enter_context(engine.begin())
        marked = connection.exec_driver_sql(
            "INSERT INTO projection (name, position) VALUES (%s, 0) ON CONFLICT DO NOTHING",
            (f"{EntityProjection.name}{target.suffix}.{rows}.{partition}",),
        )
        yield _Transaction(database_of(connection), _PathNumbers(engine, target)) if marked.rowcount else None


def _partition_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "this runs in a task"
    return context.partitionId()

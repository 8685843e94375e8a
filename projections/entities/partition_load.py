"""Transactions of processes that load rows into a rebuild's tables on behalf of it.

A process that is lost may be started again, even if its transaction was committed. So the transaction of a partition
marks it as loaded, in the table of positions, where a rebuild removes the marks with its own position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from sqlalchemy import Engine, Table

from annals.commands.store.database.engine import WRITING, open_engine
from annals.projections.database.drivers import Database, Values, database_of
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.index_paths import IndexPaths
from annals.projections.entities.tables import tables


def load_batch(engine: Engine, table: Table, rows: Sequence[Values]) -> None:
    """Inserts rows into an empty table of a SQLite file, in a transaction of their own."""
    with engine.execution_options(**{WRITING: True}).begin() as connection:
        database_of(connection).insert(table, rows)


class LoadTarget(NamedTuple):
    """Where executors insert: the URL of the database and the suffix of the tables."""

    url: str
    suffix: str


class PathNumbers:
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


class PartitionTransaction(NamedTuple):
    """The transaction of one partition."""

    db: Database
    path_numbers: PathNumbers


@contextmanager
def partition_transaction(target: LoadTarget, partition: int) -> Iterator[PartitionTransaction | None]:
    """A transaction for the rows of one partition; None if an earlier attempt has committed them."""
    # The commit that swaps the tables makes all before it durable.
    engine = open_engine(target.url, durable=False)
    with ExitStack() as stack:
        stack.callback(engine.dispose)
        connection = stack.enter_context(engine.begin())
        marked = connection.exec_driver_sql(
            "INSERT INTO projection (name, position) VALUES (%s, 0) ON CONFLICT DO NOTHING",
            (f"{EntityProjection.name}{target.suffix}.{partition}",),
        )
        yield PartitionTransaction(database_of(connection), PathNumbers(engine, target)) if marked.rowcount else None

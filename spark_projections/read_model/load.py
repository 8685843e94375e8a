"""Loads the read model that Spark computes into new tables of the registry's database.

PostgreSQL takes rows from all executors at once. A SQLite file has one writer: executors write files with rows as the
file needs them, in the order of its tables, and this process inserts these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Engine

from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.entities.rebuild import PrecomputedRows
from annals.projections.entities.tables import ReadModelTables
from annals.spark_projections.read_model import load_postgres, load_sqlite
from annals.spark_projections.read_model.load_sqlite import ReportRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def precomputed_rows(
    log: DataFrame,
    position: int,
    folder: str,
    max_leaves: int = MAX_LEAVES,
    report_rows: ReportRows = lambda count: None,
) -> PrecomputedRows:
    """The read model as of the end of an interaction, which Spark computes when it is inserted.

    log: rows of `annals.projections.log.table_rows` up to that position at least. folder: a URI that both Spark and
    this process can access, empty or missing; the caller removes it afterwards. max_leaves: maximum index leaves of one
    entity. report_rows: receives the number of rows so far that this process inserts, after Spark's tasks.
    """
    log = log.where(log.position <= position)

    def insert(engine: Engine, tables: ReadModelTables) -> None:
        if engine.dialect.name == "postgresql":
            load_postgres.insert(log, position, engine, tables, max_leaves)
        else:
            load_sqlite.insert(log, position, engine, tables, max_leaves, folder, report_rows)

    return PrecomputedRows(position, insert)

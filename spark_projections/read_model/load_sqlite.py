"""Loads the read model into a SQLite file: Spark stages encoded, sorted rows as files, and one writer inserts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Engine

from annals.projections.database.drivers import Values
from annals.projections.entities.partition_load import load_batch
from annals.projections.entities.references import all_reference_rows
from annals.projections.entities.rows import stored_row
from annals.projections.entities.schema_versions import reference_rows_of
from annals.projections.entities.tables import ReadModelTables
from annals.projections.segments.folder import filesystem_at
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.read_model import computed_rows
from annals.spark_projections.read_model.published_rows import published_rows, schema_version_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Called with the number of rows inserted so far.
ReportRows = Callable[[int], None]
#: Rows per transaction, which blocks writers for some tens of milliseconds.
BATCH_ROWS: Final = 5000


def insert(
    log: DataFrame, engine: Engine, tables: ReadModelTables, max_leaves: int, folder: str, report_rows: ReportRows
) -> None:
    """Computes and inserts all rows. folder: see `load.precomputed_rows`. Raises: ValueError for other URIs."""
    spark, stage_uri, (filesystem, root) = log.sparkSession, spark_uri(folder), filesystem_at(folder)
    # In the order of the primary keys, which halves the work of the database.
    computed_rows.ordered_stored_rows(log).write.parquet(f"{stage_uri}/rows")
    computed_rows.attribute_rows(spark.read.parquet(f"{stage_uri}/rows"), max_leaves).write.parquet(
        f"{stage_uri}/leaves"
    )
    published_rows(log).write.parquet(f"{stage_uri}/published")
    schema_version_rows(log).write.parquet(f"{stage_uri}/schemas")
    count = 0
    for name, rows in _table_batches(filesystem, root.rstrip("/")):
        load_batch(engine, getattr(tables, name), rows)
        count += len(rows)
        report_rows(count)


def _table_batches(filesystem: fs.FileSystem, root: str) -> Iterator[tuple[str, Sequence[Values]]]:
    for rows in _read_batches(filesystem, f"{root}/rows"):
        yield "entity", [row[:-1] for row in rows if row[-1] is None]
        yield "history", [row for row in rows if row[-1] is not None]
        yield "reference", all_reference_rows((stored_row(row[:-1]), row[-1]) for row in rows)
    numbers: dict[tuple[str, str], int] = {}
    for leaves in _read_batches(filesystem, f"{root}/leaves"):
        yield (
            "attribute",
            [(numbers.setdefault((type, path), len(numbers) + 1), value, key) for type, path, value, key in leaves],
        )
    yield "path", [(number, type, path) for (type, path), number in numbers.items()]
    yield from (("published", rows) for rows in _read_batches(filesystem, f"{root}/published"))
    for rows in _read_batches(filesystem, f"{root}/schemas"):
        yield "schema_version", rows
        yield "schema_reference", [reference for row in rows for reference in reference_rows_of(row)]


def _read_batches(filesystem: fs.FileSystem, folder: str) -> Iterator[list[Values]]:
    for file_info in sorted(filesystem.get_file_info(fs.FileSelector(folder)), key=lambda each: str(each.path)):
        if file_info.path.endswith(".parquet"):
            with filesystem.open_input_file(file_info.path) as file:
                for batch in pq.ParquetFile(file).iter_batches(BATCH_ROWS):
                    yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))

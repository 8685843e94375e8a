"""Computes the read model in Spark for the registry's database, where it replaces the live tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from pyarrow import fs

from annals.projections.database.drivers import Values
from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.entities.rebuild import PrecomputedRows
from annals.projections.entities.rows import row_values
from annals.projections.entities.schema_versions import reference_rows_of
from annals.projections.segments.folder import filesystem_at
from annals.spark_projections import read_model
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.published_rows import published_rows, schema_version_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows per transaction; on SQLite, a transaction blocks writers for some tens of milliseconds.
BATCH_ROWS: Final = 5000


def compute_read_model(log: DataFrame, position: int, folder: str, max_leaves: int = MAX_LEAVES) -> PrecomputedRows:
    """The read model as of the end of an interaction, staged as Parquet files.

    log: rows of `annals.projections.log.table_rows` up to that position at least. folder: a URI that both Spark and
    this process can access, empty or missing; the caller removes it afterwards. max_leaves: maximum index leaves of one
    entity.
    Raises: ValueError for a URI without a filesystem.
    """
    spark, stage_uri, (filesystem, root) = log.sparkSession, spark_uri(folder), filesystem_at(folder)
    # In the order of the primary keys, which halves the work of the database.
    read_model.ordered_entity_rows(log.where(log.position <= position)).write.parquet(f"{stage_uri}/rows")
    read_model.attribute_rows(spark.read.parquet(f"{stage_uri}/rows"), max_leaves).write.parquet(f"{stage_uri}/leaves")
    published_rows(log.where(log.position <= position)).write.parquet(f"{stage_uri}/published")
    schema_version_rows(log.where(log.position <= position)).write.parquet(f"{stage_uri}/schemas")
    return PrecomputedRows(position, _table_batches(filesystem, root.rstrip("/")))


def _table_batches(filesystem: fs.FileSystem, root: str) -> Iterator[tuple[str, Sequence[Values]]]:
    for rows in _read_batches(filesystem, f"{root}/rows"):
        yield "entity", [row_values(row[:-1]) for row in rows if row[-1] is None]
        yield "history", [row_values(row) for row in rows if row[-1] is not None]
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

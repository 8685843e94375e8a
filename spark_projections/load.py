"""From Spark into the database of the registry: what was worked out becomes its live tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from pyarrow import fs

from projections.database import Values
from projections.entities.leaves import MOST
from projections.entities.rebuild import Computed
from projections.segments.folder import filesystem_at
from spark_projections import readmodel
from spark_projections.places import for_spark
from spark_projections.published import published

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of one transaction: on SQLite, some tens of milliseconds in which writers wait.
BATCH: Final = 5000


def computed(log: DataFrame, position: int, folder: str, most: int = MOST) -> Computed:
    """The read model as of the end of an interaction, staged as Parquet files.

    log: rows of `projections.logrows` up to that position at least. folder: a URI that Spark and this process both
    reach, empty or not there; whoever calls removes it afterwards. most: leaves that the index takes of one entity.
    Raises: ValueError for a URI of no filesystem.
    """
    spark, staged, (files, root) = log.sparkSession, for_spark(folder), filesystem_at(folder)
    # In the order of the primary keys, which halves the work of the database.
    readmodel.ordered_rows(log.where(log.position <= position)).write.parquet(f"{staged}/rows")
    readmodel.attributes(spark.read.parquet(f"{staged}/rows"), most).write.parquet(f"{staged}/leaves")
    published(log.where(log.position <= position)).write.parquet(f"{staged}/published")
    return Computed(position, _batches(files, root.rstrip("/")))


def _batches(files: fs.FileSystem, root: str) -> Iterator[tuple[str, Sequence[Values]]]:
    for rows in _read(files, f"{root}/rows"):
        yield "entity", [row[:-1] for row in rows if row[-1] is None]
        yield "history", [row for row in rows if row[-1] is not None]
    yield from (("attribute", rows) for rows in _read(files, f"{root}/leaves"))
    yield from (("published", rows) for rows in _read(files, f"{root}/published"))


def _read(files: fs.FileSystem, folder: str) -> Iterator[list[Values]]:
    for each in sorted(files.get_file_info(fs.FileSelector(folder)), key=lambda each: str(each.path)):
        if each.path.endswith(".parquet"):
            with files.open_input_file(each.path) as file:
                for batch in pq.ParquetFile(file).iter_batches(BATCH):
                    yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))

"""From Spark into the database of the registry: what was worked out becomes its live tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv, fs

from projections.database import Batch, Values
from projections.entities.rebuild import Computed
from projections.segments.folder import filesystem_at
from spark_projections import readmodel
from spark_projections.places import for_spark
from spark_projections.published import published

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of one transaction: on SQLite, some tens of milliseconds in which writers wait.
BATCH: Final = 5000
_LINES: Final = csv.WriteOptions(include_header=False, quoting_style="needed")


def computed(log: DataFrame, position: int, folder: str) -> Computed:
    """The read model as of the end of an interaction, staged as Parquet files.

    log: rows of `projections.logrows` up to that position at least. folder: a URI that Spark and this process both
    reach, empty or not there; whoever calls removes it afterwards.
    Raises: ValueError for a URI of no filesystem.
    """
    spark, staged, (files, root) = log.sparkSession, for_spark(folder), filesystem_at(folder)
    # In the order of the primary keys, which halves the work of the database.
    readmodel.ordered_rows(log.where(log.position <= position)).write.parquet(f"{staged}/rows")
    readmodel.attributes(spark.read.parquet(f"{staged}/rows")).write.parquet(f"{staged}/leaves")
    published(log.where(log.position <= position)).write.parquet(f"{staged}/published")
    return Computed(position, _batches(files, root.rstrip("/")))


class _Columns:
    """A piece of a table as Arrow has it; see `Batch`."""

    def __init__(self, piece: pa.RecordBatch) -> None:
        self._piece = piece

    def rows(self) -> list[Values]:
        return list(zip(*(column.to_pylist() for column in self._piece.columns), strict=True))

    def csv(self) -> bytes:
        # Without a Python object for any of its values, of which making and writing them is most of a load.
        sink = pa.BufferOutputStream()
        csv.write_csv(self._piece, sink, _LINES)
        return bytes(sink.getvalue())


def _batches(files: fs.FileSystem, root: str) -> Iterator[tuple[str, Batch]]:
    for piece in _read(files, f"{root}/rows"):
        lives, until = pc.is_null(piece["until"]), piece.schema.get_field_index("until")
        yield "entity", _Columns(piece.filter(lives).remove_column(until))
        yield "history", _Columns(piece.filter(pc.invert(lives)))
    yield from (("attribute", _Columns(piece)) for piece in _read(files, f"{root}/leaves"))
    yield from (("published", _Columns(piece)) for piece in _read(files, f"{root}/published"))


def _read(files: fs.FileSystem, folder: str) -> Iterator[pa.RecordBatch]:
    for each in sorted(files.get_file_info(fs.FileSelector(folder)), key=lambda each: str(each.path)):
        if each.path.endswith(".parquet"):
            with files.open_input_file(each.path) as file:
                yield from pq.ParquetFile(file).iter_batches(BATCH)

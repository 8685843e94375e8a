"""Loads the read model into a SQLite file: Spark stages encoded, sorted rows as files, and one writer inserts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Engine

from annals.projections.database.drivers import Values
from annals.projections.entities.partition_load import load_batch
from annals.projections.entities.tables import ReadModelTables, tables
from annals.projections.segments.folder import filesystem_at
from annals.spark_projections.arrow_batches import ARROW_TYPES, Batches, record_batch, spark_columns
from annals.spark_projections.hadoop_paths import spark_uri
from annals.spark_projections.read_model.stream_rows import TABLES, events_in_tree_order, row_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Called with the number of rows inserted so far.
ReportRows = Callable[[int], None]
#: Rows per transaction, which blocks writers for some tens of milliseconds.
BATCH_ROWS: Final = 5000

#: The columns of rows by table.
_SCHEMAS: Final = {
    name: pa.schema([(column.name, ARROW_TYPES[column.type.python_type]) for column in getattr(tables(), name).c])
    for name in TABLES
}
#: A leaf. path: its type and its path, with a space between.
_LEAF_SCHEMA: Final = pa.schema([("path", pa.string()), ("value", pa.binary()), ("id_key", pa.string())])
_NO_LEAF: Final = (None,) * len(_LEAF_SCHEMA)
#: What tasks write: one leaf, or thousands of rows of a table as a stream of Arrow, which Spark need not convert.
_STAGED_SCHEMA: Final = pa.schema([("table", pa.string()), ("rows", pa.binary()), *_LEAF_SCHEMA])


def insert(
    log: DataFrame,
    events: int,
    engine: Engine,
    new_tables: ReadModelTables,
    max_leaves: int,
    folder: str,
    report_rows: ReportRows,
) -> None:
    """Computes and inserts all rows. folder: see `load.precomputed_rows`. Raises: ValueError for other URIs.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    events: their number.
    """
    stage_uri, (filesystem, root) = spark_uri(folder), filesystem_at(folder)
    # In the order of the primary keys, which halves the work of the database.
    streams = events_in_tree_order(log, events)
    streams.mapInArrow(partial(_to_staged, max_leaves), spark_columns(_STAGED_SCHEMA)).write.parquet(
        f"{stage_uri}/rows"
    )
    leaves = log.sparkSession.read.parquet(f"{stage_uri}/rows").where("table IS NULL").select(*_LEAF_SCHEMA.names)
    # But for the numbers of paths, which the writer gives them.
    leaves.sort(*_LEAF_SCHEMA.names).write.parquet(f"{stage_uri}/leaves")
    count = 0
    for name, rows in _table_batches(filesystem, root.rstrip("/")):
        load_batch(engine, getattr(new_tables, name), rows)
        count += len(rows)
        report_rows(count)


def _to_staged(max_leaves: int, batches: Batches) -> Batches:
    for batch in row_batches(batches, max_leaves):
        chunks = [(name, _encode(name, rows), *_NO_LEAF) for name, rows in batch.rows.items() if rows]
        yield record_batch(chunks, _STAGED_SCHEMA)
        leaves = record_batch([(f"{type} {path}", *leaf) for type, path, *leaf in batch.leaves], _LEAF_SCHEMA)
        nulls = [pa.nulls(len(leaves), kind) for kind in _STAGED_SCHEMA.types[:2]]
        yield pa.RecordBatch.from_arrays([*nulls, *leaves.columns], schema=_STAGED_SCHEMA)


def _encode(name: str, rows: Sequence[Values]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMAS[name]) as stream:
        stream.write_batch(record_batch(rows, _SCHEMAS[name]))
    return bytes(sink.getvalue())


def _table_batches(filesystem: fs.FileSystem, root: str) -> Iterator[tuple[str, Sequence[Values]]]:
    for batch in _read_batches(filesystem, f"{root}/rows", _STAGED_SCHEMA.names[:2]):
        for name, encoded in _values(batch.drop_null()):
            yield name, _values(pa.ipc.open_stream(encoded).read_all())
    numbers: dict[str, int] = {}
    for batch in _read_batches(filesystem, f"{root}/leaves"):
        yield "attribute", _values(batch.set_column(0, "path", _numbered(batch.column("path"), numbers)))
    yield "path", [(number, *path.split(" ", 1)) for path, number in numbers.items()]


def _numbered(paths: pa.StringArray, numbers: dict[str, int]) -> pa.Array:
    """The numbers of some paths; a new one gets the next, which is added to the numbers."""
    encoded = paths.dictionary_encode()
    of_dictionary = [numbers.setdefault(path, len(numbers) + 1) for path in encoded.dictionary.to_pylist()]
    return pa.array(of_dictionary, pa.int64()).take(encoded.indices)


def _values(batch: pa.RecordBatch | pa.Table) -> list[Values]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _read_batches(
    filesystem: fs.FileSystem, folder: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    for file_info in sorted(filesystem.get_file_info(fs.FileSelector(folder)), key=lambda each: str(each.path)):
        if file_info.path.endswith(".parquet"):
            with filesystem.open_input_file(file_info.path) as file:
                yield from pq.ParquetFile(file).iter_batches(BATCH_ROWS, columns=columns)

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
from annals.spark_projections.read_model.stream_rows import TABLES, RowBatch, events_in_tree_order, row_batches

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
#: What tasks write, as streams of Arrow: rows with their table, or leaves with the path of the first.
_CHUNK_SCHEMA: Final = pa.schema(
    [("table", pa.string()), ("rows", pa.binary()), ("path", pa.string()), ("leaves", pa.binary())]
)
#: Chunks that are read together.
_READ_CHUNKS: Final = 100
#: Leaves of a chunk at least, which has all of its paths that a task has at a time.
_MIN_LEAVES: Final = 1000
#: Leaves that are sorted together before they are inserted: some 100 MB.
_SORTED_LEAVES: Final = 1_000_000


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
    streams.mapInArrow(partial(_to_chunks, max_leaves), spark_columns(_CHUNK_SCHEMA)).write.parquet(f"{stage_uri}/rows")
    leaves = log.sparkSession.read.parquet(f"{stage_uri}/rows").where("path IS NOT NULL").select("path", "leaves")
    leaves.sort("path").write.parquet(f"{stage_uri}/leaves")
    count = 0
    for name, rows in _table_batches(filesystem, root.rstrip("/")):
        load_batch(engine, getattr(new_tables, name), rows)
        count += len(rows)
        report_rows(count)


def _to_chunks(max_leaves: int, batches: Batches) -> Batches:
    for batch in row_batches(batches, max_leaves):
        rows = [
            (name, _encode(of_table, _SCHEMAS[name]), None, None) for name, of_table in batch.rows.items() if of_table
        ]
        leaves = [(None, None, chunk[0][0], _encode(chunk, _LEAF_SCHEMA)) for chunk in _leaf_chunks(batch)]
        yield record_batch([*rows, *leaves], _CHUNK_SCHEMA)


def _leaf_chunks(batch: RowBatch) -> Iterator[list[Values]]:
    """The leaves in the order of their paths."""
    leaves: list[Values] = []
    for (type, path), of_path in sorted(batch.leaves.items()):
        leaves += [(f"{type} {path}", *leaf) for leaf in of_path]
        if len(leaves) >= _MIN_LEAVES:
            yield leaves
            leaves = []
    if leaves:
        yield leaves


def _encode(rows: Sequence[Values], schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(record_batch(rows, schema))
    return bytes(sink.getvalue())


def _table_batches(filesystem: fs.FileSystem, root: str) -> Iterator[tuple[str, Sequence[Values]]]:
    for name, rows in _read_chunks(filesystem, f"{root}/rows", "table", "rows"):
        yield name, _values(_decode(rows))
    numbers: dict[str, int] = {}
    chunks = (_decode(leaves) for _, leaves in _read_chunks(filesystem, f"{root}/leaves", "path", "leaves"))
    for leaves in _sorted_leaves(chunks, numbers):
        for batch in leaves.to_batches(BATCH_ROWS):
            yield "attribute", _values(batch)
    yield "path", [(number, *path.split(" ", 1)) for path, number in numbers.items()]


def _sorted_leaves(chunks: Iterator[pa.Table], numbers: dict[str, int]) -> Iterator[pa.Table]:
    """Leaves with the numbers of their paths, in the order of the primary key; new numbers are added."""
    # Chunks come in the order of paths. A path with more leaves than are sorted together comes in several ranges.
    order = [(name, "ascending") for name in _LEAF_SCHEMA.names]
    taken, count = list[pa.Table](), 0
    for chunk in chunks:
        taken.append(chunk.set_column(0, "path", _numbered(chunk.column("path").combine_chunks(), numbers)))
        count += len(chunk)
        if count >= _SORTED_LEAVES:
            yield pa.concat_tables(taken).sort_by(order)
            taken, count = [], 0
    if taken:
        yield pa.concat_tables(taken).sort_by(order)


def _numbered(paths: pa.StringArray, numbers: dict[str, int]) -> pa.Array:
    """The numbers of some paths; a new one gets the next, which is added to the numbers."""
    encoded = paths.dictionary_encode()
    of_dictionary = [numbers.setdefault(path, len(numbers) + 1) for path in encoded.dictionary.to_pylist()]
    return pa.array(of_dictionary, pa.int64()).take(encoded.indices)


def _decode(rows: bytes) -> pa.Table:
    return pa.ipc.open_stream(rows).read_all()


def _values(batch: pa.RecordBatch | pa.Table) -> list[Values]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _read_chunks(filesystem: fs.FileSystem, folder: str, name: str, rows: str) -> Iterator[Values]:
    """The chunks that have two columns."""
    for file_info in sorted(filesystem.get_file_info(fs.FileSelector(folder)), key=lambda each: str(each.path)):
        if file_info.path.endswith(".parquet"):
            with filesystem.open_input_file(file_info.path) as file:
                for batch in pq.ParquetFile(file).iter_batches(_READ_CHUNKS, columns=[name, rows]):
                    yield from _values(batch.drop_null())

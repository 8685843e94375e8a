"""Converts rows to columns of Parquet files and back, a bounded number of bytes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BufferedIOBase
from typing import Any, Final, NamedTuple, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from annals.projections.log.table_rows import LogTableRow

#: The size of the heaviest column, in characters or bytes, after which a row group ends, however few its rows are.
_MAX_GROUP_BYTES: Final = 1 << 26
#: The number of rows read together.
_READ_ROWS: Final = 2000
_COMPRESSION_LEVEL: Final = 3
_ARROW_TYPES: Final = {int: pa.int64(), str: pa.string(), bytes: pa.binary()}


class DocumentRow(NamedTuple):
    """A document: its bytes, and their SHA-256 in lower-case hex, by which events refer to it."""

    sha256: str
    content: bytes


def _arrow_schema(row: type[tuple[Any, ...]]) -> Any:
    columns = get_type_hints(row).items()
    return pa.schema([pa.field(name, _ARROW_TYPES[column_type], nullable=False) for name, column_type in columns])


LOG_FILE_SCHEMA: Final = _arrow_schema(LogTableRow)
DOCUMENT_FILE_SCHEMA: Final = _arrow_schema(DocumentRow)
#: The schemas of events that older programs wrote, without the last columns; see `KNOWN_VERSIONS`.
_OLDER_LOG_SCHEMAS: Final = tuple(pa.schema(list(LOG_FILE_SCHEMA)[:-missing]) for missing in (2, 3))


def write_table(
    file: BufferedIOBase, schema: Any, rows: Iterable[Sequence[Any]], row_group_size: int, largest_column: str
) -> int:
    """Writes rows as one Parquet file; returns their number.

    row_group_size: the maximum rows of a row group. largest_column: the column with the largest values.
    """
    count, largest_index = 0, schema.get_field_index(largest_column)
    with pq.ParquetWriter(file, schema, compression="zstd", compression_level=_COMPRESSION_LEVEL) as writer:
        for group_rows in _row_groups(rows, row_group_size, largest_index):
            columns = (
                pa.array(values, field.type)
                for values, field in zip(zip(*group_rows, strict=True), schema, strict=True)
            )
            writer.write_batch(pa.record_batch(list(columns), schema=schema))
            count += len(group_rows)
    return count


def log_rows(file: Any) -> Iterator[LogTableRow]:
    """The events of a file.

    Raises: OSError, ValueError when it is damaged.
    """
    return (LogTableRow(*row) for row in _read_rows(file, LOG_FILE_SCHEMA, _READ_ROWS))


def document_rows(file: Any) -> Iterator[DocumentRow]:
    """The documents of a file, by hash, one at a time because they may be large.

    Raises: OSError, ValueError when it is damaged.
    """
    return map(DocumentRow._make, _read_rows(file, DOCUMENT_FILE_SCHEMA, 1))


def document_hashes(file: Any) -> Iterator[str]:
    """The hashes of a file's documents, without reading their bytes."""
    return (digest for (digest,) in _read_rows(file, DOCUMENT_FILE_SCHEMA, _READ_ROWS, ["sha256"]))


def _read_rows(file: Any, schema: Any, size: int, columns: list[str] | None = None) -> Iterator[tuple[Any, ...]]:
    with pq.ParquetFile(file, pre_buffer=False) as table:
        known_schemas = (schema, *_OLDER_LOG_SCHEMAS) if schema is LOG_FILE_SCHEMA else (schema,)
        if not any(map(table.schema_arrow.equals, known_schemas)):
            raise ValueError("its columns are not those of a segment")
        for batch in table.iter_batches(batch_size=size, columns=columns, use_threads=False):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _row_groups(
    rows: Iterable[Sequence[Any]], row_group_size: int, largest_index: int
) -> Iterator[list[Sequence[Any]]]:
    group_rows, weight = list[Sequence[Any]](), 0
    for row in rows:
        group_rows.append(row)
        weight += len(row[largest_index])
        if len(group_rows) >= row_group_size or weight >= _MAX_GROUP_BYTES:
            yield group_rows
            group_rows, weight = [], 0
    if group_rows:
        yield group_rows

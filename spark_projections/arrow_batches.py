"""Rows that Python computes for Spark: their Arrow schema, its columns in Spark's words, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, get_type_hints

import pyarrow as pa

Batches = Iterable[pa.RecordBatch]

_ARROW_TYPES: Final = {int: pa.int64(), str: pa.string(), bytes: pa.binary(), float: pa.float64()}
_SPARK_TYPES: Final = {pa.int64(): "bigint", pa.string(): "string", pa.binary(): "binary", pa.float64(): "double"}


def arrow_schema(kind: type[Any]) -> pa.Schema:
    """The schema of a named tuple of numbers, texts and bytes."""
    return pa.schema([pa.field(name, _ARROW_TYPES[each]) for name, each in get_type_hints(kind).items()])


def spark_columns(schema: pa.Schema) -> str:
    """The columns of a schema as `mapInArrow` takes them."""
    return ", ".join(f"{each.name} {_SPARK_TYPES[each.type]}" for each in schema)


def record_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as one batch."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

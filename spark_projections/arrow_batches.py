"""Rows that Python computes for Spark: their Arrow schema, its columns in Spark's words, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Batches = Iterable[pa.RecordBatch]

#: By type of a value in Python.
ARROW_TYPES: Final = {int: pa.int64(), str: pa.string(), bytes: pa.binary(), float: pa.float64()}
_SPARK_TYPES: Final = {pa.int64(): "bigint", pa.string(): "string", pa.binary(): "binary", pa.float64(): "double"}


def arrow_schema(kind: type[Any]) -> pa.Schema:
    """The schema of a named tuple of numbers, texts and bytes."""
    return pa.schema([pa.field(name, ARROW_TYPES[each]) for name, each in get_type_hints(kind).items()])


def spark_columns(schema: pa.Schema) -> str:
    """The columns of a schema as `mapInArrow` takes them."""
    return ", ".join(f"{each.name} {_SPARK_TYPES[each.type]}" for each in schema)


def record_batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as one batch."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


#: Returns the computed rows of one row, whose values are its arguments.
ComputeRows = Callable[..., Iterable[tuple[Any, ...]]]


def map_rows(
    rows: DataFrame, kept: Sequence[str], arguments: Sequence[str], compute: ComputeRows, schema: pa.Schema
) -> DataFrame:
    """The rows that a function computes of each row, with some columns of this row before them.

    kept: these columns. arguments: the columns whose values the function takes. schema: of what it returns.
    """
    kept_columns = [f"`{field.name}` {field.dataType.simpleString()}" for field in rows.select(*kept).schema]
    return rows.select(*kept, *(name for name in arguments if name not in kept)).mapInArrow(
        partial(_computed_batches, kept, arguments, compute, schema),
        ", ".join((*kept_columns, spark_columns(schema))),
    )


def _computed_batches(
    kept: Sequence[str], arguments: Sequence[str], compute: ComputeRows, schema: pa.Schema, batches: Batches
) -> Batches:
    for batch in batches:
        row_indexes, values = [], []
        for row_index, row in enumerate(zip(*(batch.column(name).to_pylist() for name in arguments), strict=True)):
            for value in compute(*row):
                row_indexes.append(row_index)
                values.append(value)
        kept_values = batch.select(list(kept)).take(pa.array(row_indexes, pa.int64()))
        arrays = [*kept_values.columns, *record_batch(values, schema).columns]
        yield pa.RecordBatch.from_arrays(arrays, [*kept, *schema.names])

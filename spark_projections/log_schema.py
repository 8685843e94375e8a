"""The schema of the log that all sources share, for Spark and for Arrow.

`annals.projections.log.table_rows.LogTableRow` describes the columns. No value is ever null, but the columns are
nullable: Spark cannot guarantee otherwise for files and databases, and all sources must have one schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, get_type_hints

from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType

from annals.projections.log.table_rows import LogTableRow
from annals.spark_projections.arrow_batches import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SPARK_TYPES: Final[dict[type, DataType]] = {int: LongType(), str: StringType(), bytes: BinaryType()}

#: The schema of a log DataFrame.
LOG_SCHEMA: Final = StructType(
    [StructField(name, _SPARK_TYPES[kind]) for name, kind in get_type_hints(LogTableRow).items()]
)
#: Columns that rows of the first version of the table lack.
_LATER_COLUMNS: Final = tuple(LogTableRow._field_defaults)
#: The schema of its Arrow batches.
ARROW_SCHEMA: Final = arrow_schema(LogTableRow)


def fill_later_columns(log: DataFrame) -> DataFrame:
    """The log with empty texts in the columns that did not exist when a row was written. They may be missing."""
    stored = {name: f.col(name) if name in log.columns else f.lit(None).cast("string") for name in _LATER_COLUMNS}
    # Not `coalesce`: it would make these the only columns that are not nullable.
    filled = {name: f.when(column.isNull(), f.lit("")).otherwise(column) for name, column in stored.items()}
    return log.withColumns(filled).select(*LOG_SCHEMA.names)


class LogHead(NamedTuple):
    """The end of an interaction. chain: the hash over everything recorded up to it, in hex."""

    position: int
    chain: str

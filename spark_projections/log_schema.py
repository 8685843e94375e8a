"""The one schema that every source of the log gives, for Spark and for Arrow.

`projections.log.table_rows.LogTableRow` says what the columns hold. No value is ever null, yet no column says so: files
and databases read by Spark cannot promise it, and all sources have one schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, get_type_hints

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType

from projections.log.table_rows import LogTableRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPES: Final[dict[type, tuple[DataType, pa.DataType]]] = {
    int: (LongType(), pa.int64()),
    str: (StringType(), pa.string()),
    bytes: (BinaryType(), pa.binary()),
}
_COLUMNS: Final = {name: _TYPES[kind] for name, kind in get_type_hints(LogTableRow).items()}

#: Of a DataFrame of the log.
LOG_SCHEMA: Final = StructType([StructField(name, spark) for name, (spark, _) in _COLUMNS.items()])
#: Of its Arrow batches.
ARROW_SCHEMA: Final = pa.schema([pa.field(name, arrow) for name, (_, arrow) in _COLUMNS.items()])


def with_salt(log: DataFrame) -> DataFrame:
    """The log with an empty salt in rows that were written before there were salts."""
    # Not `coalesce`, whose column would be the only one that is never null.
    return log.withColumn("salt", f.when(f.col("salt").isNull(), f.lit("")).otherwise(f.col("salt")))


class LogHead(NamedTuple):
    """Where an interaction ended. chain: the hash over all that was recorded by then, in hex."""

    position: int
    chain: str

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
#: The schema of its Arrow batches.
ARROW_SCHEMA: Final = arrow_schema(LogTableRow)


def with_salt(log: DataFrame) -> DataFrame:
    """The log with an empty salt in rows that were written before salts existed."""
    # Not `coalesce`: it would make this the only column that is not nullable.
    return log.withColumn("salt", f.when(f.col("salt").isNull(), f.lit("")).otherwise(f.col("salt")))


class LogHead(NamedTuple):
    """The end of an interaction. chain: the hash over everything recorded up to it, in hex."""

    position: int
    chain: str

"""What each format does for a table, and what formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from pyspark.sql import functions as f

from annals.spark_projections.lake.rows import REMOVED
from annals.spark_projections.lake.tables import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Called with a step when it is done, such as `files written`; tests interrupt the work there.
ReportStep = Callable[[str], None]


class LakeError(ValueError):
    """The lake and the command do not fit; the message says why, and what to do."""


class NoTables(LakeError):
    """A lake that was to be read has no tables, or does not exist."""


class LakeBusy(LakeError):
    """Another process writes to the lake; a later try may succeed."""


class StoredTable(Protocol):
    """A table in its folder. Any number of processes read it; of two that write it at once, one fails."""

    def position(self) -> int:
        """The position that the last transaction stored; 0 where the table does not exist."""

    def positions(self) -> list[int]:
        """The positions at which the table can still be read, oldest first."""

    def read(self, position: int | None = None) -> DataFrame:
        """The rows now, or as they were at one of `positions`. Raises: LakeError for another position."""

    def commit(
        self,
        rows: DataFrame,
        position: int,
        report_step: ReportStep,
        after: int | None = None,
        is_in_order: bool = False,
    ) -> None:
        """Adds rows and stores the position in one transaction.

        rows: for a table with a key, they replace those with the same key; rows with `rows.REMOVED` remove it. after:
        the position of the table that the rows continue; None for rows that may follow any others. is_in_order:
        whether the partitions of the rows are sorted ranges, as files have them.
        Raises: LakeBusy where another process has brought the table from `after` to another position.
        """

    def optimize(self, keep_hours: float) -> None:
        """Makes files few and sorted, and removes those that no reader needs who began within `keep_hours`."""


def check_position(table: LakeTable, position: int, after: int | None) -> None:
    """Raises: LakeBusy where a table is no longer at the position that new rows continue. position: its own."""
    if after is not None and position != after:
        raise conflict(table, f"from position {after} to {position}")


def conflict(table: LakeTable, change: str = "") -> LakeBusy:
    """The error for two processes that write a table at once."""
    return LakeBusy(f"another process has changed {table.name} {change}".rstrip() + "; start again to go on")


@contextmanager
def conflicts(table: LakeTable, class_names: tuple[str, ...]) -> Iterator[None]:
    """Errors of a format about another transaction as LakeBusy. class_names: of those errors."""
    try:
        yield
    except Exception as error:
        # As text, because these classes have no counterparts in Python.
        if any(name in str(error) for name in class_names):
            raise conflict(table) from error
        raise


def check_columns(table: LakeTable, existing: DataFrame) -> list[str]:
    """The columns that a stored table lacks, because an earlier program made it.

    Raises: LakeError where it has others than this program knows.
    """
    wanted = {field.name: field.dataType for field in table.schema}
    stored = {field.name: field.dataType for field in existing.schema}
    for name, kind in stored.items():
        if wanted.get(name) != kind:
            raise LakeError(
                f"the table {table.name} has a column {name} of type {kind.simpleString()}, which this program does not"
                " write; a newer program made it"
            )
    return [name for name in wanted if name not in stored]


def arranged(table: LakeTable, rows: DataFrame, is_in_order: bool = False) -> DataFrame:
    """The rows in the order in which files hold them, with the columns of the table. is_in_order: see `StoredTable`."""
    order, kept = [*([table.partition] if table.partition else ()), *table.sort], without_removed(table, rows)
    return kept if is_in_order else kept.repartitionByRange(*order).sortWithinPartitions(*order)


def without_removed(table: LakeTable, rows: DataFrame) -> DataFrame:
    """The rows that are not marked as removed, with the columns of the table."""
    kept = rows.where(~f.col(REMOVED)) if REMOVED in rows.columns else rows
    return kept.select(*table.names)


def merge_statement(target: str, table: LakeTable, source: str) -> str:
    """The SQL that replaces the rows of a target by those of a view, by key. The view has `rows.REMOVED`."""
    names = [f"`{name}`" for name in table.names]
    assignments = ", ".join(f"t.{name} = s.{name}" for name in names)
    return (
        f"MERGE INTO {target} t USING {source} s ON t.`{table.key}` = s.`{table.key}`"
        f" WHEN MATCHED AND s.{REMOVED} THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {assignments}"
        f" WHEN NOT MATCHED AND NOT s.{REMOVED} THEN INSERT ({', '.join(names)})"
        f" VALUES ({', '.join(f's.{name}' for name in names)})"
    )


@contextmanager
def merge_view(table: LakeTable, rows: DataFrame) -> Iterator[str]:
    """A temporary view with the rows of a merge."""
    name = f"annals_lake_{table.name}"
    marked = rows if REMOVED in rows.columns else rows.withColumn(REMOVED, f.lit(False))
    marked.select(*table.names, REMOVED).createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)


@contextmanager
def session_settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Settings of a session for one block."""
    previous = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in previous.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


@contextmanager
def default_settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Settings of a session for one block; those that the session was configured with have precedence."""
    configured = spark.sparkContext.getConf()
    with session_settings(spark, {name: value for name, value in values.items() if not configured.contains(name)}):
        yield


#: How Parquet files are written. With zstd they take three fifths of the space of Spark's default. With several open
#: files, rows that are in order are not sorted again by the column that divides the files.
_FILE_SETTINGS: Final = {
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.maxConcurrentOutputFileWriters": "100",
}


def file_settings(spark: SparkSession) -> AbstractContextManager[None]:
    """The settings for writing Parquet files, for one block."""
    return default_settings(spark, _FILE_SETTINGS)


def column_list(table: LakeTable, names: list[str] | None = None) -> str:
    """The columns as SQL declares them, with their meanings as comments."""
    return ", ".join(
        f"`{column.name}` {column.type} COMMENT '{_escaped(column.about)}'"
        for column in table.columns
        if names is None or column.name in names
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")

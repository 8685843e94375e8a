"""Tables as Delta tables. The position is the version of Delta's own record of an application's transactions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from annals.spark_projections.hadoop_paths import file_names, hadoop_folder
from annals.spark_projections.lake.formats.contract import (
    LakeError,
    ReportStep,
    arranged,
    check_columns,
    check_position,
    column_list,
    conflicts,
    file_settings,
    merge_statement,
    merge_view,
    session_settings,
)
from annals.spark_projections.lake.tables import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The application in Delta's record of transactions.
APPLICATION: Final = "annals"
_COMMIT_SETTINGS: Final = {
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
}
#: A commit or a checkpoint in the folder of commits.
_LOG_FILE: Final = re.compile(r"[0-9]{20}\.(json|checkpoint\..+)")
#: Errors about a transaction that another process committed first.
_CONFLICTS: Final = (
    *("ConcurrentTransactionException", "ConcurrentAppendException", "ConcurrentDeleteReadException"),
    *("ConcurrentDeleteDeleteException", "ConcurrentWriteException", "MetadataChangedException"),
)
#: A VACUUM lists files with as many tasks, however few there are; the default is 10,000.
_LISTING_TASKS: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_RETENTION_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


def open_table(spark: SparkSession, root: str, table: LakeTable) -> DeltaLakeTable:
    """The table below the folder of a lake."""
    return DeltaLakeTable(spark, f"{root}/{table.name}", table)


class DeltaLakeTable:
    """A Delta table; see `contract.StoredTable`."""

    def __init__(self, spark: SparkSession, uri: str, table: LakeTable) -> None:
        self._spark = spark
        self._uri = uri
        self._table = table
        self._name = f"delta.`{uri}`"

    def position(self) -> int:
        if not self._exists():
            return 0
        log = self._delta_log()
        # Scala's defaults, which Python has to pass by itself.
        defaults = [getattr(log, f"update$default${number}")() for number in (1, 2, 3)]
        found = log.update(*defaults).transactions().get(APPLICATION)
        return int(found.get()) if found.isDefined() else 0

    def positions(self) -> list[int]:
        return list(self._versions()) if self._exists() else []

    def read(self, position: int | None = None) -> DataFrame:
        if not self._exists():
            return self._spark.createDataFrame([], self._table.schema)
        reader = self._spark.read.format("delta")
        if position is None:
            return reader.load(self._uri)
        if (version := self._versions().get(position)) is None:
            raise LakeError(f"{self._table.name} cannot be read at position {position}: no transaction ended there")
        return reader.option("versionAsOf", version).load(self._uri)

    def commit(
        self,
        rows: DataFrame,
        position: int,
        report_step: ReportStep,
        after: int | None = None,
        is_in_order: bool = False,
    ) -> None:
        is_new = self._prepare()
        report_step("table made")
        # A transaction of Delta reads the version of its application, so it fails where another one writes that.
        check_position(self._table, self.position(), after)
        with conflicts(self._table, _CONFLICTS), file_settings(self._spark):
            self._write(rows, position, is_new, is_in_order)

    def _write(self, rows: DataFrame, position: int, is_new: bool, is_in_order: bool) -> None:
        transaction = {"txnAppId": APPLICATION, "txnVersion": str(position), "userMetadata": str(position)}
        if self._table.key is None or is_new:
            writer = arranged(self._table, rows, is_in_order).write.format("delta").mode("append")
            writer.options(**transaction).save(self._uri)
            return
        settings = {_COMMIT_SETTINGS[name]: value for name, value in transaction.items()}
        with merge_view(self._table, rows) as view, session_settings(self._spark, settings):
            self._spark.sql(merge_statement(self._name, self._table, view))

    def optimize(self, keep_hours: float) -> None:
        if not self._exists():
            return
        with file_settings(self._spark):
            self._spark.sql(f"OPTIMIZE {self._name} ZORDER BY ({', '.join(self._table.sort)})")
        tasks = str(self._spark.sparkContext.defaultParallelism)
        with session_settings(self._spark, {_RETENTION_CHECK: "false", _LISTING_TASKS: tasks}):
            self._spark.sql(f"VACUUM {self._name} RETAIN {keep_hours} HOURS")

    def _prepare(self) -> bool:
        """Makes the table, or adds the columns that it lacks; whether it has no transaction of rows yet."""
        if not self._exists():
            partition = f"PARTITIONED BY ({self._table.partition})" if self._table.partition else ""
            columns = column_list(self._table)
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {self._name} ({columns}) USING delta {partition}")
            return True
        if missing := check_columns(self._table, self.read()):
            self._spark.sql(f"ALTER TABLE {self._name} ADD COLUMNS ({column_list(self._table, missing)})")
        return self.position() == 0

    def _versions(self) -> dict[int, int]:
        """The version of the table after each position, the newest one with that position."""
        history = self._spark.sql(f"DESCRIBE HISTORY {self._name}").select("version", "userMetadata").collect()
        return {int(text): version for version, text in sorted(history) if text}

    def _exists(self) -> bool:
        """Whether the table has a commit. A process that was killed while it made the table leaves a folder without."""
        names = file_names(hadoop_folder(self._spark, f"{self._uri}/_delta_log"))
        return any(_LOG_FILE.fullmatch(name) for name in names)

    def _delta_log(self) -> Any:
        jvm: Any = self._spark._jvm
        return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._spark._jsparkSession, self._uri)

"""Tables as Iceberg tables of a catalog that is only a folder. The position is a property of each snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import functions as f

from annals.spark_projections.hadoop_paths import file_names, hadoop_folder
from annals.spark_projections.lake.formats.contract import (
    LakeError,
    ReportStep,
    arranged,
    check_columns,
    check_position,
    column_list,
    conflicts,
    merge_statement,
    merge_view,
)
from annals.spark_projections.lake.tables import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

#: The property of a snapshot that holds the position of the table.
POSITION: Final = "annals.position"
_CATALOG: Final = "org.apache.iceberg.spark.SparkCatalog"
#: Hours after which a file that no snapshot refers to cannot be a part of a transaction; Iceberg refuses less than 24.
_UNFINISHED_HOURS: Final = 25.0
_VERSION_HINT: Final = "version-hint.text"
#: The metadata of a version of the table, which are compressed if the session says so.
_VERSION: Final = re.compile(r"v[0-9]+(\.gz)?\.metadata\.json(\.gz)?")
#: Errors about a transaction that another process committed first.
_CONFLICTS: Final = ("iceberg.exceptions.CommitFailedException", "iceberg.exceptions.ValidationException")


def open_table(spark: SparkSession, root: str, table: LakeTable) -> IcebergLakeTable:
    """The table below the folder of a lake."""
    catalog = f"lake_{sha256(root.encode()).hexdigest()[:12]}"
    prefix = f"spark.sql.catalog.{catalog}"
    settings = {"": _CATALOG, ".type": "hadoop", ".warehouse": root, ".cache-enabled": "false"}
    for name, value in settings.items():
        spark.conf.set(prefix + name, value)
    return IcebergLakeTable(spark, catalog, root, table)


class IcebergLakeTable:
    """An Iceberg table; see `contract.StoredTable`."""

    def __init__(self, spark: SparkSession, catalog: str, root: str, table: LakeTable) -> None:
        self._spark = spark
        self._catalog = catalog
        self._uri = f"{root}/{table.name}"
        self._table = table
        self._name = f"{catalog}.`{table.name}`"

    def position(self) -> int:
        return max(self._snapshots(), default=0)

    def positions(self) -> list[int]:
        return list(self._snapshots())

    def read(self, position: int | None = None) -> DataFrame:
        if not self._exists():
            return self._spark.createDataFrame([], self._table.schema)
        if position is None:
            return self._spark.table(self._name)
        if (snapshot := self._snapshots().get(position)) is None:
            raise LakeError(f"{self._table.name} cannot be read at position {position}: no transaction ended there")
        return self._spark.read.option("snapshot-id", snapshot).table(self._name)

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
        snapshots = self._snapshots()
        check_position(self._table, max(snapshots, default=0), after)
        with conflicts(self._table, _CONFLICTS):
            if self._table.key is not None and not is_new:
                self._merge(rows, position)
            elif after is None:
                self._writer(arranged(self._table, rows, is_in_order), position).append()
            else:
                # Replaces no row, as an append does, but fails where files were added since that snapshot.
                ordered = arranged(self._table, rows, is_in_order)
                writer = self._writer(ordered, position).option("isolation-level", "serializable")
                if after in snapshots:
                    writer = writer.option("validate-from-snapshot-id", str(snapshots[after]))
                writer.overwrite(f.lit(False))

    def optimize(self, keep_hours: float) -> None:
        if not self._exists():
            return
        position, system, argument = self.position(), f"{self._catalog}.system", f"table => '{self._table.name}'"
        order = ", ".join(self._table.sort)
        self._spark.sql(
            f"CALL {system}.rewrite_data_files({argument}, strategy => 'sort', sort_order => '{order}',"
            " options => map('rewrite-all', 'true'))"
        )
        # The snapshot of a compaction has no position, and the snapshots that have one expire.
        self._writer(self.read().limit(0), position).append()
        expired = f"older_than => TIMESTAMP '{_before(keep_hours)}'"
        self._spark.sql(f"CALL {system}.expire_snapshots({argument}, {expired}, retain_last => 1)")
        # Of writers that were killed. A file that nothing refers to may also be one that is being written.
        unneeded = f"older_than => TIMESTAMP '{_before(max(keep_hours, _UNFINISHED_HOURS))}'"
        self._spark.sql(f"CALL {system}.remove_orphan_files({argument}, {unneeded})")

    def _writer(self, rows: DataFrame, position: int) -> DataFrameWriterV2:
        return rows.writeTo(self._name).option(f"snapshot-property.{POSITION}", str(position))

    def _merge(self, rows: DataFrame, position: int) -> None:
        with merge_view(self._table, rows) as view:
            statement = merge_statement(self._name, self._table, view)
            # Only this call gives properties to the snapshot of a MERGE.
            jvm: Any = self._spark._jvm
            gateway = self._spark.sparkContext._gateway
            ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]  # has no types
            properties = jvm.java.util.HashMap()
            properties.put(POSITION, str(position))
            error_class = jvm.java.lang.Class.forName("java.lang.RuntimeException")
            commit = _Callable(lambda: self._spark.sql(statement))
            try:
                jvm.org.apache.iceberg.spark.CommitMetadata.withCommitProperties(properties, commit, error_class)
            except Exception as error:
                raise commit.error or error from None  # an error that passes through Java is no PySparkException

    def _prepare(self) -> bool:
        """Makes the table, or adds the columns that it lacks; whether it has no transaction of rows yet."""
        if not self._exists():
            partition = f"PARTITIONED BY ({self._table.partition})" if self._table.partition else ""
            self._spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self._name} ({column_list(self._table)}) USING iceberg {partition}"
                " TBLPROPERTIES ('format-version' = '2')"
            )
            return True
        if missing := check_columns(self._table, self.read()):
            self._spark.sql(f"ALTER TABLE {self._name} ADD COLUMNS ({column_list(self._table, missing)})")
        return self.position() == 0

    def _snapshots(self) -> dict[int, int]:
        """The id of the newest snapshot at each position."""
        if not self._exists():
            return {}
        rows = self._spark.sql(
            f"SELECT summary['{POSITION}'] AS position, snapshot_id FROM {self._name}.snapshots ORDER BY committed_at"
        ).collect()
        return {int(row.position): int(row.snapshot_id) for row in rows if row.position is not None}

    def _exists(self) -> bool:
        """Whether the table has a version, with or without the file that hints at the newest one.

        Each commit of Iceberg deletes that file before it writes the next one. A process may be killed in between, or
        look in between; Iceberg then finds the newest version itself, as the names of metadata have their numbers.
        """
        metadata = hadoop_folder(self._spark, f"{self._uri}/metadata")
        if metadata.filesystem.exists(metadata.make_path(metadata.root, _VERSION_HINT)):
            return True  # without a look at the files, which may be very many
        return any(_VERSION.fullmatch(name) for name in file_names(metadata))


def _before(hours: float) -> datetime:
    return datetime.now(UTC) - timedelta(hours=hours)


class _Callable:
    """A `java.util.concurrent.Callable` that runs a function of Python. error: the one that it raised."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self.error: Exception | None = None

    def call(self) -> None:
        try:
            self._function()
        except Exception as error:
            self.error = error
            raise

    class Java:
        implements: Final = ["java.util.concurrent.Callable"]

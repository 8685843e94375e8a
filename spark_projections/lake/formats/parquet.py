"""Tables as plain Parquet files, for programs without a table format. The newest manifest names the files that count.

`data/` has the files, in folders by partition; a file never changes. `manifest/` has a small JSON file for each
transaction, which appears atomically: it names the valid files, with the position and the schema. Files that it no
longer names stay until `optimize` removes them, for readers that have them open.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pydantic import BaseModel, ValidationError
from pyspark.sql import functions as f

from annals.spark_projections.hadoop_paths import hadoop_folder
from annals.spark_projections.lake.formats.contract import (
    LakeError,
    ReportStep,
    arranged,
    check_columns,
    check_position,
    conflict,
    file_settings,
    without_removed,
)
from annals.spark_projections.lake.tables import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_DATA: Final = "data"
_MANIFEST: Final = "manifest"
_SECONDS_PER_HOUR: Final = 3600


class TableManifest(BaseModel, frozen=True):
    """The valid files of a table at one position of the log.

    number: 1, 2, 3 … in the table. position: of the last event in it. columns: names and types, in Spark's words.
    files: paths relative to the folder of the table. retired: files that this transaction replaced, with the seconds
    since 1970 at which it did.
    """

    format: Literal[1] = 1
    number: int = 0
    position: int = 0
    columns: dict[str, str] = {}
    files: tuple[str, ...] = ()
    retired: dict[str, float] = {}


def open_table(spark: SparkSession, root: str, table: LakeTable) -> ParquetLakeTable:
    """The table below the folder of a lake."""
    return ParquetLakeTable(spark, f"{root}/{table.name}", table)


class ParquetLakeTable:
    """A table of Parquet files; see `contract.StoredTable`."""

    def __init__(self, spark: SparkSession, uri: str, table: LakeTable) -> None:
        self._spark = spark
        self._filesystem, root, self._make_path = hadoop_folder(spark, uri)
        self._uri = str(self._filesystem.makeQualified(root).toString())
        self._table = table

    def position(self) -> int:
        return self._newest().position

    def positions(self) -> list[int]:
        return [manifest.position for manifest in self._readable()]

    def read(self, position: int | None = None) -> DataFrame:
        if position is None:
            return self._read_files(self._newest(), self._newest().files)
        for manifest in reversed(self._readable()):
            if manifest.position == position:
                return self._read_files(manifest, manifest.files)
        raise LakeError(f"{self._table.name} cannot be read at position {position}: no transaction ended there")

    def commit(
        self,
        rows: DataFrame,
        position: int,
        report_step: ReportStep,
        after: int | None = None,
        is_in_order: bool = False,
    ) -> None:
        previous = self._newest()
        check_position(self._table, previous.position, after)
        check_columns(self._table, self._read_files(previous, ()))
        replaced, merged = self._merged(previous, rows, is_in_order)
        written = self._write(merged)
        report_step("files written")
        kept = tuple(path for path in previous.files if path not in replaced)
        self._store(previous, position, (*kept, *written))

    def optimize(self, keep_hours: float) -> None:
        # In this order and first: a file of a transaction that ends meanwhile is not in the list, and is not removed.
        existing = set(self._files())
        manifests = [self._manifest(name) for name in sorted(self._names(_MANIFEST))]
        if not manifests:
            return
        previous = manifests[-1]
        written = self._write(arranged(self._table, self._read_files(previous, previous.files)))
        manifests.append(self._store(previous, previous.position, written))
        self._remove_unneeded(existing, manifests, time.time() - keep_hours * _SECONDS_PER_HOUR)

    def _merged(self, previous: TableManifest, rows: DataFrame, is_in_order: bool) -> tuple[set[str], DataFrame]:
        """The files that a transaction replaces, and the rows to write: the new ones, and the others of those files."""
        if self._table.key is None or not previous.files:
            return set(), arranged(self._table, rows, is_in_order)
        keys = rows.select(self._table.key)
        stored = self._read_files(previous, previous.files)
        touched = stored.withColumn("_file", f.input_file_name()).join(keys, self._table.key, "left_semi")
        names = {str(row[0]).rpartition("/")[2] for row in touched.select("_file").distinct().collect()}
        replaced = {path for path in previous.files if path.rpartition("/")[2] in names}
        others = self._read_files(previous, tuple(replaced)).join(keys, self._table.key, "left_anti")
        kept = without_removed(self._table, rows)
        return replaced, arranged(self._table, others.select(*self._table.names).unionByName(kept))

    def _write(self, rows: DataFrame) -> tuple[str, ...]:
        """Writes rows as new files in the folders of their partitions, and returns their paths."""
        # Into a folder of its own first: those of another process, also a dead one, are none of this transaction.
        staged = f"_{uuid4().hex}"
        writer = rows.write
        if self._table.partition:
            writer = writer.partitionBy(self._table.partition)
        with file_settings(self._spark):
            writer.parquet(f"{self._uri}/{staged}")
        targets = {path: path.replace(staged, _DATA, 1) for path in sorted(self._files(staged))}
        for path, target in targets.items():
            self._filesystem.mkdirs(self._path(target).getParent())
            # Hadoop leaves it to each filesystem whether it raises an error or returns false.
            if not self._filesystem.rename(self._path(path), self._path(target)):
                places = f"{self._uri}/{path} to {self._uri}/{target}"
                raise LakeError(f"the filesystem has not renamed {places}; {self._table.name} is as it was")
        self._remove(staged)
        return tuple(targets.values())

    def _read_files(self, manifest: TableManifest, files: tuple[str, ...]) -> DataFrame:
        schema = self._schema(manifest)
        if not files:
            return self._spark.createDataFrame([], schema)
        reader = self._spark.read.schema(schema).option("basePath", f"{self._uri}/{_DATA}")
        # Partition columns come last in files, and where they belong in the table.
        return reader.parquet(*(f"{self._uri}/{path}" for path in files)).select(*schema.names)

    def _schema(self, manifest: TableManifest) -> StructType:
        """The columns of this program, and those that a newer one has added."""
        schema = self._table.schema
        for name, kind in manifest.columns.items():
            if name not in schema.names or schema[name].dataType.simpleString() != kind:
                schema = type(schema)([field for field in schema if field.name != name]).add(name, kind)
        return schema

    def _store(self, previous: TableManifest, position: int, files: tuple[str, ...]) -> TableManifest:
        manifest = TableManifest(
            number=previous.number + 1,
            position=position,
            columns={field.name: field.dataType.simpleString() for field in self._table.schema},
            files=files,
            retired=dict.fromkeys(sorted(set(previous.files) - set(files)), time.time()),
        )
        self._put(manifest)
        return manifest

    def _put(self, manifest: TableManifest) -> None:
        """Makes a manifest the current one: its file exists completely or not at all."""
        path = self._path(_manifest_path(manifest.number))
        temporary_path = self._path(f"_{uuid4().hex}")
        stream = self._filesystem.create(temporary_path, True)
        stream.write(bytearray(manifest.model_dump_json(indent=1).encode()))
        stream.close()
        self._filesystem.mkdirs(self._path(_MANIFEST))
        if self._filesystem.exists(path) or not self._filesystem.rename(temporary_path, path):
            raise conflict(self._table)

    def _newest(self) -> TableManifest:
        names = self._names(_MANIFEST)
        return self._manifest(max(names)) if names else TableManifest()

    def _readable(self) -> list[TableManifest]:
        """The manifests whose files all exist, oldest first."""
        existing = set(self._files())
        manifests = (self._manifest(name) for name in sorted(self._names(_MANIFEST)))
        return [manifest for manifest in manifests if existing.issuperset(manifest.files)]

    def _manifest(self, name: str) -> TableManifest:
        path = f"{_MANIFEST}/{name}"
        try:
            return TableManifest.model_validate_json(self._content(path))
        except ValidationError as error:
            reason = error.errors()[0]["msg"]
        except Py4JJavaError as error:
            reason = error.java_exception.getMessage()
        raise LakeError(f"{self._uri}/{path} is not a manifest that this program reads: {reason}")

    def _content(self, path: str) -> bytes:
        """The bytes of a file. Raises: Py4JJavaError where it is missing, or differs from its checksum."""
        stream = self._filesystem.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def _remove_unneeded(self, existing: set[str], manifests: list[TableManifest], oldest: float) -> None:
        """Removes what was replaced up to a time, the manifests that nobody can use, and what killed writers left.

        existing: the files before the last of the manifests.
        """
        retired = {path for each in manifests for path, replaced in each.retired.items() if replaced > oldest}
        kept = retired.union(manifests[-1].files)
        for path in existing - kept:
            self._remove(path)
        for manifest in manifests:
            # One that says when a file was replaced stays as long as that file.
            if not kept.issuperset(manifest.files) and kept.isdisjoint(manifest.retired):
                self._remove(_manifest_path(manifest.number))
        for name in self._names(""):
            if name.startswith("_"):
                self._remove(name)

    def _files(self, subfolder: str = _DATA) -> list[str]:
        """The data files in a folder of the table, as paths in the table."""
        folder = self._path(subfolder)
        if not self._filesystem.exists(folder):
            return []
        found, listing = list[str](), self._filesystem.listFiles(folder, True)
        while listing.hasNext():
            path = str(listing.next().getPath().toString()).removeprefix(f"{self._uri}/")
            if path.endswith(".parquet"):
                found.append(path)
        return found

    def _names(self, subfolder: str) -> list[str]:
        path = self._path(subfolder) if subfolder else self._make_path(self._uri)
        if not self._filesystem.exists(path):
            return []
        return [str(status.getPath().getName()) for status in self._filesystem.listStatus(path)]

    def _remove(self, path: str) -> None:
        self._filesystem.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._make_path(f"{self._uri}/{path}")


def _manifest_path(number: int) -> str:
    return f"{_MANIFEST}/{number:020}.json"

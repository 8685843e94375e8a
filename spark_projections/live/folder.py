"""A folder of live tables on any filesystem that Spark can write to, accessed with Spark's credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from py4j.protocol import Py4JJavaError

from annals.spark_projections.hadoop_paths import hadoop_folder
from annals.spark_projections.live.manifest import EMPTY_MANIFEST, Manifest, Run, parse_manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Kinds of runs, each with its own subfolder.
STATES: Final = "states"
ENTITIES: Final = "entities"
CHANGES: Final = "changes"
HELD_EVENTS: Final = "held"

_MANIFEST_FOLDER: Final = "manifest"
_KINDS: Final = (STATES, ENTITIES, CHANGES, HELD_EVENTS)
#: Newest manifests to keep, for readers that have just listed them.
_MAX_MANIFESTS: Final = 20
#: Rows per file of a run.
_ROWS_PER_FILE: Final = 250_000


class LiveTableFolder:
    """A folder of live tables. uri: of the folder, which the first run creates."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self.spark = spark
        self._filesystem, root, self._make_path = hadoop_folder(spark, uri)
        self.uri = str(self._filesystem.makeQualified(root).toString())

    def newest_manifest(self) -> Manifest:
        """The current manifest; `EMPTY_MANIFEST` where there is none. Raises: LiveTablesError."""
        while names := self._names(_MANIFEST_FOLDER):
            path = f"{_MANIFEST_FOLDER}/{max(names)}"
            try:
                stream = self._filesystem.open(self._path(path))
            except Py4JJavaError:
                if max(self._names(_MANIFEST_FOLDER)) == max(names):
                    raise
                continue  # the writer committed a newer one and removed this one
            try:
                return parse_manifest(bytes(stream.readAllBytes()), f"{self.uri}/{path}")
            finally:
                stream.close()
        return EMPTY_MANIFEST

    def commit(self, manifest: Manifest) -> None:
        """Makes a manifest the current one: its file exists completely or not at all."""
        name = f"{_MANIFEST_FOLDER}/{manifest.number:020}.json"
        temporary_path = self._path(f"_{uuid4().hex}.part")
        stream = self._filesystem.create(temporary_path, True)
        stream.write(bytearray(manifest.model_dump_json(indent=1).encode()))
        stream.close()
        self._filesystem.mkdirs(self._path(_MANIFEST_FOLDER))
        if not self._filesystem.rename(temporary_path, self._path(name)):
            raise OSError(f"{self.uri}/{name} cannot be written")

    def write(self, kind: str, rows: DataFrame, expected_count: int, sort_column: str) -> tuple[Run, ...]:
        """A new run; none where there are no rows.

        expected_count: approximate number of rows. sort_column: column that sorts the files.
        """
        folder = f"{kind}/{uuid4().hex}"
        partitioned = rows.repartitionByRange(expected_count // _ROWS_PER_FILE + 1, sort_column).sortWithinPartitions(
            sort_column
        )
        partitioned.write.parquet(f"{self.uri}/{folder}")
        count = self.spark.read.schema(rows.schema).parquet(f"{self.uri}/{folder}").count()
        if count:
            return (Run(folder, count),)
        self._remove(folder)
        return ()

    def read(self, runs: tuple[Run, ...], template: DataFrame) -> DataFrame:
        """The rows of runs. template: a DataFrame with the same columns."""
        if not runs:
            return template.limit(0)
        return self.spark.read.schema(template.schema).parquet(*(f"{self.uri}/{run.folder}" for run in runs))

    def remove_retired(self, previous: Manifest, current: Manifest) -> None:
        """Removes files that were retired long enough ago, and all but the newest manifests."""
        for folder in set(previous.retired) - set(current.retired):
            self._remove(folder)
        for name in sorted(self._names(_MANIFEST_FOLDER))[:-_MAX_MANIFESTS]:
            self._remove(f"{_MANIFEST_FOLDER}/{name}")

    def remove_unfinished(self) -> None:
        """Removes unfinished files of a killed stream. No other process may write at the same time."""
        manifest = self.newest_manifest()
        for kind in _KINDS:
            for name in self._names(kind):
                if (folder := f"{kind}/{name}") not in manifest.folders() | set(manifest.retired):
                    self._remove(folder)
        for name in self._names(""):
            if name.endswith(".part"):
                self._remove(name)

    def _names(self, subfolder: str) -> list[str]:
        path = self._path(subfolder) if subfolder else self._make_path(self.uri)
        if not self._filesystem.exists(path):
            return []
        return [str(status.getPath().getName()) for status in self._filesystem.listStatus(path)]

    def _remove(self, relative_path: str) -> None:
        self._filesystem.delete(self._path(relative_path), True)

    def _path(self, relative_path: str) -> Any:
        return self._make_path(f"{self.uri}/{relative_path}")

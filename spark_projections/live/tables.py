"""The live tables for readers, each at the position that its folder has at the time of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from annals.spark_projections.analysis.changes import changes as changes_of
from annals.spark_projections.analysis.states import entities as entities_of
from annals.spark_projections.live.folder import LiveTableFolder
from annals.spark_projections.live.manifest import Manifest
from annals.spark_projections.live.runs import live_rows, newest_rows
from annals.spark_projections.log_schema import LOG_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def position(spark: SparkSession, folder: str) -> int:
    """The log position of the tables; 0 for an empty folder."""
    return LiveTableFolder(spark, folder).newest_manifest().position


def entities(spark: SparkSession, folder: str) -> DataFrame:
    """`analysis.entities` at the newest position. Raises: LiveTablesError."""
    table_folder = LiveTableFolder(spark, folder)
    return _entities(table_folder, table_folder.newest_manifest())


def changes(spark: SparkSession, folder: str) -> DataFrame:
    """`analysis.changes` up to the newest position. Raises: LiveTablesError."""
    table_folder = LiveTableFolder(spark, folder)
    return _changes(table_folder, table_folder.newest_manifest())


def register(spark: SparkSession, folder: str) -> int:
    """Registers both tables as temporary views of one position, which it returns; call it again for newer data.

    Sets the session's time zone to UTC. Raises: LiveTablesError.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    table_folder = LiveTableFolder(spark, folder)
    manifest = table_folder.newest_manifest()
    for table in _TABLES:
        table(table_folder, manifest).createOrReplaceTempView(table.__name__.removeprefix("_"))
    return manifest.position


def _entities(table_folder: LiveTableFolder, manifest: Manifest) -> DataFrame:
    rows = table_folder.read(manifest.entities, entities_of(_empty_log(table_folder.spark)))
    return rows if len(manifest.entities) == 1 else live_rows(newest_rows(rows))


def _changes(table_folder: LiveTableFolder, manifest: Manifest) -> DataFrame:
    return table_folder.read(manifest.changes, changes_of(_empty_log(table_folder.spark)))


def _empty_log(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], LOG_SCHEMA)


_TABLES: Final = (_entities, _changes)

"""Whether the folder of a lake may be written to: maintenance removes files that a table does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from annals.spark_projections.hadoop_paths import HadoopFolder, hadoop_folder
from annals.spark_projections.lake.formats.contract import LakeError
from annals.spark_projections.lake.tables import ALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What the folder of a table has in each format.
_MARKS: Final = {"delta": "_delta_log", "iceberg": "metadata", "parquet": "manifest"}
#: The folder that segments and archives of a log have next to those of events and documents.
_SEGMENTS_MARK: Final = "manifest"
#: Characters of a path that Spark reads as patterns of files, or as the end of a name in SQL.
_REFUSED_CHARACTERS: Final = {"delta": "`", "iceberg": "`", "parquet": "*?[]{}\\"}


def check_folders(spark: SparkSession, format: str, root: str) -> None:
    """Checks that a folder is a lake of a format, or can become one: what is in its way belongs to somebody else.

    root: a URI without a slash at its end. Raises: LakeError.
    """
    if refused := sorted(set(_REFUSED_CHARACTERS[format]) & set(root)):
        raise LakeError(f"{root} has the character {refused[0]}, which Spark does not take as a part of a name")
    folder = hadoop_folder(spark, root)
    if _SEGMENTS_MARK in _entries(folder, ""):
        raise LakeError(f"{root} has segments or an archive of a log; a lake needs a folder of its own")
    for name in ALL_TABLES:
        _check_table(format, f"{root}/{name}", _entries(folder, name))


def _check_table(format: str, path: str, entries: set[str]) -> None:
    for other, mark in _MARKS.items():
        if other != format and mark in entries:
            raise LakeError(f"{path} is a table of the format {other}; choose that format, or another folder")
    if entries and _MARKS[format] not in entries and not _is_unfinished(format, entries):
        raise LakeError(f"{path} has other files than a table of the format {format}; a lake needs a folder of its own")


def _is_unfinished(format: str, entries: set[str]) -> bool:
    """Whether a writer that was killed may have left what is in the folder of a table."""
    return format != "delta" and all(name == "data" or name.startswith("_") for name in entries)


def _entries(folder: HadoopFolder, name: str) -> set[str]:
    path = folder.make_path(folder.root, name) if name else folder.root
    if not folder.filesystem.exists(path):
        return set()
    return {str(status.getPath().getName()) for status in folder.filesystem.listStatus(path)}

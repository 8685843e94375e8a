"""A place under one name, although Spark and Arrow call stores differently: `s3` is `s3a` to Hadoop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3: Final = ("s3", "s3a")


def spark_uri(uri: str) -> str:
    """The folder that Arrow has at a path or a URI, as Spark takes it: nothing is escaped.

    It has a scheme in any case, as Spark's own default may be another. Credentials and options of a bucket's URI are
    Arrow's; Spark has its own settings for them, and shows its paths to everybody.
    """
    parts = urlsplit(uri)
    if len(parts.scheme) < 2:  # one letter is a drive
        return f"file://{Path(uri).absolute().as_posix()}"
    if parts.scheme in _S3:
        return f"s3a://{parts.netloc.rpartition('@')[2]}{unquote(parts.path)}".rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}".rstrip("/")


def with_s3a_scheme(uri: str) -> str:
    """A folder that is Spark's alone, where paths are as its own settings have them: only buckets change."""
    return spark_uri(uri) if urlsplit(uri).scheme in _S3 else uri


class HadoopFolder(NamedTuple):
    """Where Spark writes, through its own eyes: it knows schemes that Arrow does not, and has its own credentials.

    files: Hadoop's filesystem; root: Hadoop's path there; path_of: makes another of a text.
    """

    files: Any
    root: Any
    path_of: Any


def hadoop_folder(spark: SparkSession, uri: str) -> HadoopFolder:
    """The place of a folder that need not be there."""
    context: Any = spark.sparkContext
    path_of = context._jvm.org.apache.hadoop.fs.Path
    root = path_of(with_s3a_scheme(uri))
    return HadoopFolder(root.getFileSystem(context._jsc.hadoopConfiguration()), root, path_of)

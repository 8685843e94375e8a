"""Paths and URIs in the form that Spark (Hadoop) needs; for example, `s3` in Arrow is `s3a` in Hadoop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3_SCHEMES: Final = ("s3", "s3a")


def spark_uri(uri: str) -> str:
    """The URI in Spark of a folder that Arrow names by a path or a URI; nothing is escaped.

    The result always has a scheme, because Spark's default may be another one. Credentials and options in a bucket's
    URI are for Arrow and are removed: Spark has its own settings for them, and shows its paths to everybody.
    """
    parts = urlsplit(uri)
    if len(parts.scheme) < 2:  # a single letter is a drive, not a scheme
        return f"file://{Path(uri).absolute().as_posix()}"
    if parts.scheme in _S3_SCHEMES:
        return f"s3a://{parts.netloc.rpartition('@')[2]}{unquote(parts.path)}".rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{unquote(parts.path)}".rstrip("/")


def with_s3a_scheme(uri: str) -> str:
    """The URI of a folder that only Spark uses. Paths stay as Spark's settings define them; only `s3` changes."""
    return spark_uri(uri) if urlsplit(uri).scheme in _S3_SCHEMES else uri


class HadoopFolder(NamedTuple):
    """A folder as Hadoop's filesystem API sees it, which supports schemes that Arrow lacks and has its own credentials.

    filesystem: Hadoop's filesystem. root: Hadoop's path of the folder. make_path: makes a Hadoop path of a text.
    """

    filesystem: Any
    root: Any
    make_path: Any


def hadoop_folder(spark: SparkSession, uri: str) -> HadoopFolder:
    """The handle of a folder, which need not exist."""
    context: Any = spark.sparkContext
    path_class = context._jvm.org.apache.hadoop.fs.Path
    root = path_class(with_s3a_scheme(uri))
    return HadoopFolder(root.getFileSystem(context._jsc.hadoopConfiguration()), root, path_class)


def file_names(folder: HadoopFolder) -> Iterator[str]:
    """The names in a folder, one by one, because there may be very many; none where there is no such folder."""
    if not folder.filesystem.exists(folder.root):
        return
    files = folder.filesystem.listStatusIterator(folder.root)
    while files.hasNext():
        yield str(files.next().getPath().getName())

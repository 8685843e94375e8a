"""A place under one name, although Spark and Arrow call stores differently: `s3` is `s3a` to Hadoop."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_S3: Final = ("s3", "s3a")


def for_spark(uri: str) -> str:
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


def spelt_for_spark(uri: str) -> str:
    """A folder that is Spark's alone, where paths are as its own settings have them: only buckets change."""
    return for_spark(uri) if urlsplit(uri).scheme in _S3 else uri

"""The formats in which tables are stored, one module each behind `contract.StoredTable`.

Belongs here: how rows and the position are written in one transaction, and how files are kept few. What rows are does
not; that is in `lake/rows.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from annals.spark_projections.hadoop_paths import spark_uri, with_s3a_scheme
from annals.spark_projections.lake.formats.contract import StoredTable
from annals.spark_projections.lake.tables import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FormatName = Literal["delta", "iceberg", "parquet"]
#: The formats, each with the connectors that a session needs for it.
FORMATS: Final[dict[FormatName, tuple[str, ...]]] = {"delta": ("delta",), "iceberg": ("iceberg",), "parquet": ()}


def stored_table(spark: SparkSession, format: FormatName, uri: str, table: LakeTable) -> StoredTable:
    """A table of the lake at a URI, which need not exist yet."""
    root = with_s3a_scheme(uri) if "://" in uri else spark_uri(uri)
    found: StoredTable = import_module(f"{__name__}.{format}").open_table(spark, root.rstrip("/"), table)
    return found

"""The formats in which tables are stored, one module each behind `contract.StoredTable`.

Belongs here: how rows and the position are written in one transaction, and how files are kept few. What rows are does
not; that is in `lake/rows.py`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from annals.spark_projections.lake.formats.contract import StoredTable
from annals.spark_projections.lake.tables import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FormatName = Literal["delta", "iceberg", "parquet"]
#: The formats, each with the connectors that a session needs for it.
FORMATS: Final[dict[FormatName, tuple[str, ...]]] = {"delta": ("delta",), "iceberg": ("iceberg",), "parquet": ()}


def stored_table(spark: SparkSession, format: FormatName, root: str, table: LakeTable) -> StoredTable:
    """A table below the folder of a lake, which need not exist yet. root: a URI without a slash at its end."""
    found: StoredTable = import_module(f"{__name__}.{format}").open_table(spark, root, table)
    return found

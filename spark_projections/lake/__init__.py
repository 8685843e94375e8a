"""The log as tables that other programs can read: Delta, Iceberg or plain Parquet.

Belongs here: what the tables are (`tables.py`, `rows.py`), how they are stored (`formats/`), and how they are filled,
proved and kept small. Views for one session of Spark are in `analysis/`.
"""

from __future__ import annotations

from annals.spark_projections.lake.append import AppendReport, Lake, append
from annals.spark_projections.lake.formats.contract import LakeBusy, LakeError

__all__ = ["AppendReport", "Lake", "LakeBusy", "LakeError", "append"]

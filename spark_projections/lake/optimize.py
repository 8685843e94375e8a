"""Keeps the files of a lake few, sorted and needed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from annals.spark_projections.lake.append import Lake
from annals.spark_projections.lake.formats.contract import LakeError, ReportStep
from annals.spark_projections.lake.tables import ALL_TABLES

#: Hours for which readers may still read what was replaced, and for which past positions stay readable.
KEEP_HOURS: Final = 168.0


def optimize(
    lake: Lake,
    keep_hours: float = KEEP_HOURS,
    names: Collection[str] = tuple(ALL_TABLES),
    report_step: ReportStep = lambda step: None,
) -> None:
    """Sorts and merges the files of tables, and removes those that nobody has needed for some hours.

    No row and no position changes. keep_hours: a reader that began before may miss its files.
    Raises: NoTables where there is none of these tables; LakeError for a negative time.
    """
    if keep_hours < 0:
        raise LakeError("--keep-hours must not be negative")
    existing_tables = lake.existing_tables(names)  # first, because the lock makes the folder
    with lake.writer_lock():
        for name in existing_tables:
            lake.table(name).optimize(keep_hours)
            report_step(f"{name}: optimized")

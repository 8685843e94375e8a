"""Live tables from a folder of segments: files of two writers, and one that no manifest names."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import SegmentSize, append_segments
from tests.spark_projections.live_tables import check_tables, run_to_end
from tests.spark_projections.served_registry import ServedLog

pytestmark = [pytest.mark.long, pytest.mark.uses("Spark"), pytest.mark.timeout(600)]


def test_segments_as_they_appear(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    # The same events in segments of two sizes, the first with a gap that closes later
    rows, folder = registry.rows(), tmp_path / "segments"
    options = ("--from", "segments", "--folder", str(folder))
    append_segments(registry.database, open_folder(str(folder)), SegmentSize(60, 1))
    files = sorted((folder / "log").glob("*.parquet"))
    missing = files[len(files) // 2]
    missing.rename(tmp_path / missing.name)
    before = run_to_end(tmp_path, *options)
    (tmp_path / missing.name).rename(missing)
    append_segments(registry.database, open_folder(str(tmp_path / "others")), SegmentSize(100, 1))
    for path in (tmp_path / "others" / "log").iterdir():
        path.rename(folder / "log" / path.name)
    said = run_to_end(tmp_path, *options)
    assert before != said
    assert said == f"position {check_tables(spark, tmp_path / 'tables', rows)}"
    assert said == f"position {rows[-1].position}"

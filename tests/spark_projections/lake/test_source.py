"""What a source says of its log, so that a lake is not continued from another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import SegmentSize, append_segments
from annals.spark_projections.lake.source import from_postgres, from_registry, from_segments
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.lake.lakes import check_source
from tests.spark_projections.served_registry import ServedLog, served_log

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(600)]


def test_a_registry_and_its_segments(spark: SparkSession, registry: ServedLog, tmp_path: Path) -> None:
    rows = registry.rows()
    check_source(from_registry(spark, registry.url), rows)
    append_segments(registry.database, open_folder(str(tmp_path / "segments")), SegmentSize(events=20))
    check_source(from_segments(spark, str(tmp_path / "segments")), rows)


def test_a_database(spark: SparkSession, connectors: list[str], postgres_url: str, tmp_path: Path) -> None:
    require_connector(connectors, "postgres")
    with served_log(postgres_url, tmp_path) as registry:
        check_source(from_postgres(spark, postgres_url), registry.rows())

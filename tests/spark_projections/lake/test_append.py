"""Tables of a lake equal those that are computed at once, however the log arrives, and wherever a writer stops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from annals.spark_projections.lake import Lake, append
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.example_registry import send_requests
from tests.spark_projections.lake.lakes import FORMATS, Story, check_lake

pytestmark = [pytest.mark.uses("Spark"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The example registry."""
    path = tmp_path_factory.mktemp("story") / "annals.db"
    asyncio.run(send_requests(f"sqlite:///{path}"))
    return Story.of(spark, path)


def lake_of(spark: SparkSession, connectors: list[str], format: str, folder: Path) -> Lake:
    """A lake in a folder; skips the test where the jars of its format cannot be had."""
    if format != "parquet":
        require_connector(connectors, format)
    return Lake(spark, format, str(folder / "lake"))  # type: ignore[arg-type]


@pytest.mark.parametrize("format", FORMATS)
def test_the_tables_follow_the_log(
    spark: SparkSession, connectors: list[str], story: Story, tmp_path: Path, format: str
) -> None:
    lake = lake_of(spark, connectors, format, tmp_path)
    ends = story.ends()
    for end in (ends[len(ends) // 2], ends[-1]):
        append(lake, story.source(end))
        check_lake(lake, story, end)

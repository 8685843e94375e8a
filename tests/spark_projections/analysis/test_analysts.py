"""docs/guides/spark/analysts.md: each query runs on the registry that it describes, and gives the result shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from annals.spark_projections import analysis
from annals.spark_projections.log_schema import LOG_SCHEMA
from tests.spark_projections.example_registry import send_requests
from tests.spark_projections.served_registry import log_rows
from tests.support.serving import ROOT

GUIDE = (ROOT / "docs" / "guides" / "spark" / "analysts.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```\n\n?```text\n(.*?)```\n", GUIDE, re.DOTALL)
_DESCRIBED = re.findall(r"^\| `(\w+)` \| (.*?) \|$", GUIDE, re.MULTILINE)


@pytest.fixture(scope="module")
def analyst(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session with the tables of the example registry."""
    database = f"sqlite:///{tmp_path_factory.mktemp('story') / 'annals.db'}"
    asyncio.run(send_requests(database))
    analysis.register(spark, spark.createDataFrame([tuple(row) for row in log_rows(database)], LOG_SCHEMA))
    for name in analysis.TABLES:
        spark.catalog.cacheTable(name)
    yield spark
    for name in analysis.TABLES:
        spark.catalog.uncacheTable(name)
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize(("query", "shown"), QUERIES)
def test_a_query_of_the_guide(
    analyst: SparkSession, capsys: pytest.CaptureFixture[str], query: str, shown: str
) -> None:
    analyst.sql(query).show(100, truncate=False)
    assert capsys.readouterr().out.strip() == shown.strip()


def test_the_guide_asks_every_table() -> None:
    queried = {name for query, _ in QUERIES for name in re.findall(r"(?:FROM|JOIN) (\w+)", query)}
    assert queried >= set(analysis.TABLES)


def test_the_guide_describes_each_column(analyst: SparkSession) -> None:
    described = {table: set(re.findall(r"`(\w+)`", columns)) for table, columns in _DESCRIBED}
    assert described == {name: set(analyst.table(name).columns) for name in analysis.TABLES}

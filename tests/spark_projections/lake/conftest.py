"""One lake of the shop's registry in each format, filled once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from annals.spark_projections.lake import Lake, append
from annals.spark_projections.lake.formats import FormatName
from annals.spark_projections.lake.observations import observed_rows
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.lake.example import LINKS, SUBSCRIPTIONS, write_example
from tests.spark_projections.lake.lakes import ExampleLog

#: A new, empty lake in a folder.
NewLake = Callable[[str, Path], Lake]
#: The lake of a format with the whole log; tests only read it.
FullLake = Callable[[str], Lake]
#: When the status of the example registry's subscriptions and links was requested.
OBSERVED = (datetime(2026, 3, 24, 9, tzinfo=UTC), datetime(2026, 3, 25, 9, tzinfo=UTC))


@pytest.fixture(scope="session")
def example_log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ExampleLog:
    """The log of the shop's registry."""
    path = tmp_path_factory.mktemp("shop") / "annals.db"
    write_example(path)
    return ExampleLog.of(spark, path)


@pytest.fixture(scope="session")
def new_lake(spark: SparkSession, connectors: list[str]) -> NewLake:
    """Creates a lake; skips the test if the jars of its format are not available."""

    def make(format: str, folder: Path) -> Lake:
        if format != "parquet":
            require_connector(connectors, format)
        return Lake(spark, cast(FormatName, format), str(folder / format))

    return make


@pytest.fixture(scope="session")
def full_lake(example_log: ExampleLog, new_lake: NewLake, tmp_path_factory: pytest.TempPathFactory) -> FullLake:
    """The lakes by format, each filled in two runs, when it is first needed."""
    folder, made = tmp_path_factory.mktemp("lakes"), dict[str, Lake]()

    def find(format: str) -> Lake:
        if format not in made:
            made[format] = filled_lake(new_lake(format, folder), example_log)
        return made[format]

    return find


def filled_lake(lake: Lake, example_log: ExampleLog) -> Lake:
    """Fills a lake with the whole log, in two runs."""
    for end in example_log.halves():
        append(lake, example_log.source(end))
    for taken in OBSERVED:
        lake.add_observations(observed_rows(lake.spark, 56, SUBSCRIPTIONS, LINKS, taken), taken)
    return lake

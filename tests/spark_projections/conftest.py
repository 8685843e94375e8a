"""One Spark session for all tests here, and one registry with a history."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from annals.spark_projections.jars import CONNECTORS, MissingJars, connector_jars
from annals.spark_projections.java import MissingJava, java_home
from annals.spark_projections.session import SparkSettings, session
from tests.spark_projections.served_registry import ServedLog, served_log

#: Few tasks, and no web pages.
_CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def connectors() -> list[str]:
    """The names of the connectors whose jars are available."""
    return [name for name in CONNECTORS if _is_available(name)]


@pytest.fixture(scope="session")
def spark(connectors: list[str]) -> Iterator[SparkSession]:
    """The session, with all available connectors. Skips the test if there is no suitable Java."""
    try:
        java_home()
    except MissingJava as error:
        pytest.skip(str(error))
    found = session(SparkSettings(master="local[2]", memory="700m", conf=_CONF), connectors)
    yield found
    found.stop()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    """A served registry on SQLite, which tests only read."""
    folder = tmp_path_factory.mktemp("registry")
    with served_log(f"sqlite:///{folder / 'annals.db'}", folder) as found:
        yield found


def require_connector(connectors: list[str], name: str) -> None:
    """Skips the test if the jars of a connector are not available."""
    if name not in connectors:
        try:
            connector_jars([name])
        except (MissingJars, MissingJava) as error:
            pytest.skip(str(error))


def _is_available(name: str) -> bool:
    try:
        return bool(connector_jars([name]))
    except (MissingJars, MissingJava):
        return False

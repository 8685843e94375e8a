"""The Spark session for given settings: on this machine, or on a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from annals.spark_projections.jars import CONNECTORS, connector_jars
from annals.spark_projections.java import java_home
from annals.spark_projections.settings import SparkSettings
from annals.spark_projections.sources.annals import register

__all__ = ["SparkSettings", "session"]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The Python that Spark starts. By default it is this one, because it has the packages that the code imports.
_PYTHON_VARIABLE: Final = "PYSPARK_PYTHON"


def session(settings: SparkSettings | None = None, connectors: Iterable[str] = tuple(CONNECTORS)) -> SparkSession:
    """The session of this process, a new one where there is none, with the source `annals` registered.

    connectors: names from `jars.CONNECTORS`. An existing session keeps the jars that it has.
    Raises: MissingJava, MissingJars.
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession() or _create_session(settings or SparkSettings(), connectors)
    register(spark)
    return spark


def _create_session(settings: SparkSettings, connectors: Iterable[str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home(settings.java))
    os.environ.setdefault(_PYTHON_VARIABLE, sys.executable)
    if (settings.master or "").startswith("local"):
        # The machine's own host name may not resolve, and no other machine has to reach it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("annals")
    for name, value in (_spark_config(settings, connectors) | settings.conf).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _spark_config(settings: SparkSettings, connectors: Iterable[str]) -> dict[str, str]:
    jar_list = ",".join(str(jar.resolve()) for jar in connector_jars(connectors, settings.jars, settings.java))
    spark_settings = {
        "spark.master": settings.master,
        "spark.driver.memory": settings.memory,
        "spark.executor.memory": settings.memory,
        "spark.jars": jar_list,
        "spark.jars.packages": settings.packages,
        # The log's times are in UTC, so timestamps made of them must be too.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # Without it, "available now" ends after the one batch that an earlier run left unfinished.
        "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    }
    return {name: value for name, value in spark_settings.items() if value}

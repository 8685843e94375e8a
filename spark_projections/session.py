"""A Spark session by settings: on this machine, or on whatever cluster they name."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pydantic_settings import BaseSettings, SettingsConfigDict

from spark_projections.jars import CONNECTORS, connector_jars
from spark_projections.java import java_home
from spark_projections.sources.annals import register

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What a Python that Spark starts is, unless somebody has said so: this one, which has what the code imports.
_PYTHON: Final = "PYSPARK_PYTHON"


class SparkSettings(BaseSettings):
    """From the environment (`ANNALS_SPARK_...`) and `.env`.

    master: URL of the cluster; without one, what `spark-defaults.conf` says, else all cores of this machine. memory: of
    the driver and of each executor, such as `4g`. jars: folder with the connectors' jars. packages: Maven coordinates
    of more, with commas, which Spark fetches, such as those of a file system. java: folder to use as JAVA_HOME.
    conf: further settings of Spark, as a JSON object.
    """

    model_config = SettingsConfigDict(env_prefix="ANNALS_SPARK_", env_file=".env", extra="ignore")

    master: str | None = None
    memory: str | None = None
    jars: str | None = None
    packages: str | None = None
    java: str | None = None
    conf: dict[str, str] = {}


def session(settings: SparkSettings | None = None, connectors: Iterable[str] = tuple(CONNECTORS)) -> SparkSession:
    """The session of this process, a new one where there is none, which knows the source `annals`.

    connectors: those wanted, by their names in `jars.CONNECTORS`. A session that is there already keeps its jars.
    Raises: MissingJava, MissingJars.
    """
    from pyspark.sql import SparkSession

    found = SparkSession.getActiveSession() or _new(settings or SparkSettings(), connectors)
    register(found)
    return found


def _new(settings: SparkSettings, connectors: Iterable[str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java_home(settings.java))
    os.environ.setdefault(_PYTHON, sys.executable)
    if (settings.master or "").startswith("local"):
        # The machine's own name may lead nowhere, and nobody else has to find it.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("annals")
    for name, value in (_conf(settings, connectors) | settings.conf).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _conf(settings: SparkSettings, connectors: Iterable[str]) -> dict[str, str]:
    files = ",".join(str(each.resolve()) for each in connector_jars(connectors, settings.jars, settings.java))
    named = {
        "spark.master": settings.master,
        "spark.driver.memory": settings.memory,
        "spark.executor.memory": settings.memory,
        "spark.jars": files,
        "spark.jars.packages": settings.packages,
        # Times of the log are in UTC, and so is what is made of them.
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # Else "available now" ends with the one batch that an earlier run left unfinished.
        "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    }
    return {name: value for name, value in named.items() if value}

"""The Spark session for given settings: on this machine, or on a cluster.

This file can be imported without Spark, because the console lists the settings.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from annals.spark_projections.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Settings of a session that uses a connector. They are given at the start of a session, or not at all.
_CONNECTOR_CONFIG: Final = {
    "delta": {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The default of 50 tasks for each look at a table takes longer than all the rest in tables of few files.
        "spark.databricks.delta.snapshotPartitions": "4",
    },
    "iceberg": {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    },
}
_EXTENSIONS: Final = "spark.sql.extensions"
#: The Python that Spark starts. By default it is this one, because it has the packages that the code imports.
_PYTHON_VARIABLE: Final = "PYSPARK_PYTHON"


def _parse_object(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError('a JSON object is needed, such as {"spark.executor.cores": "2"}') from None


class SparkSettings(BaseSettings):
    """Settings from the environment (`ANNALS_SPARK_...`) and `.env`."""

    model_config = SettingsConfigDict(
        env_prefix="ANNALS_SPARK_", env_file=".env", extra="ignore", hide_input_in_errors=True
    )

    master: str | None = Field(
        None,
        description="URL of the cluster; if unset, the one in `spark-defaults.conf`, else all cores of this machine",
    )
    memory: str | None = Field(None, description="memory of the driver and of each executor, such as `4g`")
    jars: str | None = Field(None, description="folder with the jars of the connectors")
    packages: str | None = Field(
        None, description="additional Maven coordinates, comma-separated, such as those of a filesystem"
    )
    java: str | None = Field(None, description="folder to use as `JAVA_HOME`")
    conf: Annotated[dict[str, str], NoDecode, BeforeValidator(_parse_object)] = Field(
        {}, description="additional settings of Spark, as a JSON object"
    )


def local_folder(settings: SparkSettings) -> str:
    """Where Spark keeps what it sorts, unless `spark-defaults.conf` says otherwise; a cluster has its own setting."""
    return settings.conf.get("spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()


def session(settings: SparkSettings | None = None, connectors: Iterable[str] | None = None) -> SparkSession:
    """The session of this process, a new one where there is none.

    connectors: names from `jars.CONNECTORS`; None for all. An existing session keeps the jars that it has.
    Raises: MissingJava, MissingJars.
    """
    from pyspark.sql import SparkSession

    from annals.spark_projections.jars import CONNECTORS

    wanted = CONNECTORS if connectors is None else connectors
    return SparkSession.getActiveSession() or _create_session(settings or SparkSettings(), wanted)


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
    from annals.spark_projections.jars import connector_jars

    connectors = list(connectors)
    jar_list = ",".join(str(jar.resolve()) for jar in connector_jars(connectors, settings.jars, settings.java))
    connector_settings = [_CONNECTOR_CONFIG.get(name, {}) for name in connectors]
    extensions = ",".join(config[_EXTENSIONS] for config in connector_settings if _EXTENSIONS in config)
    spark_settings: dict[str, str | None] = {}
    for config in connector_settings:
        spark_settings |= config
    spark_settings |= {
        _EXTENSIONS: extensions,
        "spark.master": settings.master,
        "spark.driver.memory": settings.memory,
        "spark.executor.memory": settings.memory,
        "spark.jars": jar_list,
        "spark.jars.packages": settings.packages,
        # The log's times are in UTC, so timestamps made of them must be too.
        "spark.sql.session.timeZone": "UTC",
        # The default is a type of 12 bytes that other programs no longer write.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.ui.showConsoleProgress": "false",
        # Without it, "available now" ends after the one batch that an earlier run left unfinished.
        "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    }
    return {name: value for name, value in spark_settings.items() if value}

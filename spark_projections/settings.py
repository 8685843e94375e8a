"""The settings `ANNALS_SPARK_...`, which can be read without Spark."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


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

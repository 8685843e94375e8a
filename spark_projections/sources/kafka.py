"""The log from the Kafka topic that `annals publish` writes: `<prefix>.log`, a JSON row in each record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as f

from projections.logrows import SCHEMA_VERSION
from projections.publishing.records import SCHEMA
from spark_projections.schema import LOG_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The events of whole interactions, up to the first that the topic does not have all of when this is called.

    Records lie in several partitions, and those written last may be there in one and not yet in another. What was
    published twice comes once.
    servers: `host:port` with commas. options: further ones of Spark's Kafka source, such as `kafka.security.protocol`.
    """
    loaded = spark.read.format("kafka").options(**_options(servers, topic, options)).load()
    log = _rows(loaded).dropDuplicates(["position"])
    end = first_missing(log)
    return log if end is None else log.where(f.col("last") < end)


def stream(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Events as they come, from the beginning of the topic on unless the options say otherwise.

    At least once, and those of one Group in order; an interaction may be in several micro-batches.
    """
    loaded = spark.readStream.format("kafka").options(**_options(servers, topic, options)).load()
    return _rows(loaded)


def _options(servers: str, topic: str, options: Mapping[str, str] | None) -> dict[str, str]:
    own = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    return own | dict(options or {}) | {"includeHeaders": "true"}


def _rows(records: DataFrame) -> DataFrame:
    """Rows of records; hashes come as base64, which is how Spark reads bytes from JSON."""
    headers = f.filter("headers", lambda header: header["key"] == SCHEMA)
    version = f.try_element_at(headers, f.lit(1))["value"].cast("string")
    row = f.from_json(f.col("value").cast("string"), LOG_SCHEMA, {"mode": "FAILFAST"})
    unknown = f.raise_error(f.lit(f"a record has other columns than those of schema {SCHEMA_VERSION}"))
    known = f.when(version == str(SCHEMA_VERSION), row).otherwise(unknown)
    return records.select(known.alias("row")).select("row.*")


def first_missing(log: DataFrame, after: int = 0) -> int | None:
    """The first position of what follows a gap, or of an interaction with one; None where there is no gap.

    after: the position behind which the log should begin.
    """
    found = log.groupBy("first", "last").agg(f.count("*").alias("events"))
    # Over all interactions at once, because each is three numbers; a join would read the topic a second time.
    before = f.lag("last", 1, after).over(Window.orderBy("last"))
    follows, whole = f.col("first") == before + 1, f.col("events") == f.col("last") - f.col("first") + 1
    gaps = found.withColumn("goes on", follows & whole).where(~f.col("goes on"))
    missing: Any = gaps.agg(f.min("first")).collect()[0][0]
    return None if missing is None else int(missing)

"""The log from the Kafka topic that `annals publish` writes: `<prefix>.log`, a JSON row in each record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from projections.kafka.records import SCHEMA
from projections.log.table_rows import KNOWN_VERSIONS
from spark_projections.log_schema import LOG_SCHEMA, with_salt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The events of whole interactions, up to the first that the topic does not have all of when this is called.

    Goes through the topic for that once before the rows are asked for. The rest as with `rows`.
    """
    return whole_interactions(read_rows(spark, servers, topic, options))


def read_rows(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The events that the topic has whenever a query asks for them, each once, though it was published twice.

    servers: `host:port` with commas. options: further ones of Spark's Kafka source, such as `kafka.security.protocol`.
    """
    loaded = spark.read.format("kafka").options(**_options(servers, topic, options)).load()
    return _rows(loaded).dropDuplicates(["position"])


def whole_interactions(log: DataFrame) -> DataFrame:
    """The events of whole interactions, up to the first that there is not all of now.

    Records lie in several partitions, and those written last may be there in one and not yet in another.
    """
    missing, last = _ends(log, 0)
    # Bound in either case: each query that reads the rows asks the topic anew, which has more by then.
    return log.where(f.col("last") <= (last or 0) if missing is None else f.col("last") < missing)


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
    unknown = f.raise_error(f.lit(f"a record has other columns than those of the schemas {KNOWN_VERSIONS}"))
    known = f.when(version.isin(*map(str, KNOWN_VERSIONS)), row).otherwise(unknown)
    return with_salt(records.select(known.alias("row")).select("row.*"))


def first_missing(log: DataFrame, after: int = 0) -> int | None:
    """The first position of what follows a gap, or of an interaction with one; None where there is no gap.

    after: the position behind which the log should begin.
    """
    return _ends(log, after)[0]


def _ends(log: DataFrame, after: int) -> tuple[int | None, int | None]:
    """See `first_missing`; and the last position of all, None where there is none."""
    found = log.groupBy("first", "last").agg(f.count("*").alias("events"))
    # Each interaction meets the one before it where that ends, which takes neither a second look at the topic nor one
    # place for all of them.
    begins = f.struct((f.col("first") - 1).alias("at"), f.col("first").alias("begins"))
    ends = f.struct(f.col("last").alias("at"), f.lit(None).cast("bigint").alias("begins"))
    broken = f.when(f.col("events") != f.col("last") - f.col("first") + 1, f.col("first")).alias("broken")
    met = found.select(broken, f.inline(f.array(begins, ends))).groupBy("at")
    sides = met.agg(
        f.min("begins").alias("begins"), f.count_if(f.col("begins").isNull()).alias("ends"), f.min("broken")
    )
    alone = f.when((f.col("ends") == 0) & (f.col("at") != after), f.col("begins"))
    missing, last = sides.agg(f.min(f.least(alone, f.col("min(broken)"))), f.max("at")).collect()[0]
    return missing, last

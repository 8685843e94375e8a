"""The log from the Kafka topic that `annals publish` writes: `<prefix>.log`, one JSON row per record."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from annals.projections.kafka.log_topic import DOCUMENT, SCHEMA
from annals.projections.kafka.records import POSITION
from annals.projections.log.table_rows import KNOWN_VERSIONS
from annals.spark_projections.log_schema import LOG_SCHEMA, fill_later_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: How much earlier than an interaction its records may seem to be published, by the clock of the publisher.
CLOCK_DIFFERENCE: Final = timedelta(hours=1)
#: For how long records of a partition may be visible before earlier ones of another partition, by any clock.
MAX_FLIGHT: Final = timedelta(minutes=10)


class RecordsMissing(Exception):
    """A topic lacks records before those that it has; the message says which."""


def read(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The events of whole interactions, up to the first incomplete interaction at the time of the call.

    Reads the topic once to find that position, before any rows are read. Parameters: see `read_rows`.
    """
    return whole_interactions(read_rows(spark, servers, topic, options))


def read_rows(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The events in the topic at the time of each query, without duplicates of events that were published twice.

    servers: comma-separated `host:port`. options: further options of Spark's Kafka source, such as
    `kafka.security.protocol`.
    """
    records = spark.read.format("kafka").options(**_reader_options(servers, topic, options)).load()
    return _parse_rows(records).dropDuplicates(["position"])


def documents(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """The documents that the records carry, as `sha256` and `content`; none unless the registry publishes them."""
    records = spark.read.format("kafka").options(**_reader_options(servers, topic, options)).load()
    carried = records.select(f.explode(f.filter("headers", lambda header: header["key"] == DOCUMENT)).alias("header"))
    content = carried.select(f.sha2("header.value", 256).alias("sha256"), f.col("header.value").alias("content"))
    return content.dropDuplicates(["sha256"])


def options_after(
    spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None, position: int, time: str
) -> dict[str, str]:
    """Options with which a read of the topic has all records after a position, and few before it.

    time: of the interaction that ends at the position. Events are published after they are recorded, in their order. So
    the read begins at that time, which Kafka finds by its index. It begins with the topic where the record of the
    position itself is not found that way: because it is gone, or because clocks differ by more than CLOCK_DIFFERENCE.
    """
    given = dict(options or {})
    if not position:
        return given
    start = datetime.fromisoformat(time) - CLOCK_DIFFERENCE
    recent = given | {
        "startingTimestamp": str(int(start.timestamp() * 1000)),
        "startingOffsetsByTimestampStrategy": "latest",
    }
    records = spark.read.format("kafka").options(**_reader_options(servers, topic, recent)).load()
    is_position = f.exists(
        "headers", lambda header: (header["key"] == POSITION) & (header["value"].cast("string") == str(position))
    )
    return given if records.where(is_position).isEmpty() else recent


def whole_interactions(log: DataFrame, after: int = 0) -> DataFrame:
    """The events of whole interactions, up to the first incomplete interaction at the time of the call.

    after: the position after which the log begins.

    Records are in several partitions, and the latest ones may be visible in one partition but not yet in another.
    """
    return _until(log, *_log_ends(log, after))


def next_interactions(log: DataFrame, after: int) -> tuple[DataFrame, bool]:
    """The same of a log without events up to a position, and whether there are events but none that can follow that."""
    first_gap, last = _log_ends(log, after)
    is_stopped = first_gap is not None and log.where(f.col("position") < first_gap).isEmpty()
    return _until(log, first_gap, last), is_stopped


def _until(log: DataFrame, first_gap: int | None, last: int | None) -> DataFrame:
    # The filter always has an upper bound: each query reads the topic again, and the topic has grown by then.
    return log.where(f.col("last") <= (last or 0) if first_gap is None else f.col("last") < first_gap)


def check_records_in_flight(
    spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None, after: int
) -> None:
    """Checks that records that follow a position may still come, where the topic has only later ones.

    Raises: RecordsMissing if those have been there for longer than records are in flight.
    """
    records = spark.read.format("kafka").options(**_reader_options(servers, topic, options)).load()
    is_later = f.exists(
        "headers", lambda header: (header["key"] == POSITION) & (header["value"].cast("string").cast("bigint") > after)
    )
    published = records.where(is_later).agg(f.min("timestamp")).collect()[0][0]
    if published is not None and datetime.now() - published > MAX_FLIGHT:
        raise RecordsMissing(
            f"the topic {topic} has later records, and not all of the interaction that follows position {after}; they"
            " may have been deleted"
        )


def stream(spark: SparkSession, servers: str, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Events as they arrive, from the beginning of the topic unless the options say otherwise.

    Delivery is at least once, and in order within one Group. An interaction may be split over several micro-batches.
    """
    records = spark.readStream.format("kafka").options(**_reader_options(servers, topic, options)).load()
    return _parse_rows(records)


def _reader_options(servers: str, topic: str, options: Mapping[str, str] | None) -> dict[str, str]:
    defaults = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    }
    return defaults | dict(options or {}) | {"includeHeaders": "true"}


def _parse_rows(records: DataFrame) -> DataFrame:
    """Log rows of Kafka records. Hashes are base64, because Spark reads bytes in JSON that way."""
    headers = f.filter("headers", lambda header: header["key"] == SCHEMA)
    version = f.try_element_at(headers, f.lit(1))["value"].cast("string")
    row = f.from_json(f.col("value").cast("string"), LOG_SCHEMA, {"mode": "FAILFAST"})
    version_error = f.raise_error(f.lit(f"a record does not have the columns of the schemas {KNOWN_VERSIONS}"))
    checked_row = f.when(version.isin(*map(str, KNOWN_VERSIONS)), row).otherwise(version_error)
    return fill_later_columns(records.select(checked_row.alias("row")).select("row.*"))


def _log_ends(log: DataFrame, after: int) -> tuple[int | None, int | None]:
    """Where the log has its first gap, and its last position; None where there is none.

    A gap is the first position of an interaction that is incomplete, or that does not follow the one before it. after:
    the position after which the log should begin.
    """
    interactions = log.groupBy("first", "last").agg(f.count("*").alias("events"))
    # Each interaction is grouped with the end of the one before it. This needs neither a second read of the topic nor a
    # single task for all interactions.
    start_side = f.struct((f.col("first") - 1).alias("at"), f.col("first").alias("begins"))
    end_side = f.struct(f.col("last").alias("at"), f.lit(None).cast("bigint").alias("begins"))
    incomplete_start = f.when(f.col("events") != f.col("last") - f.col("first") + 1, f.col("first")).alias("broken")
    boundary_groups = interactions.select(incomplete_start, f.inline(f.array(start_side, end_side))).groupBy("at")
    boundaries = boundary_groups.agg(
        f.min("begins").alias("begins"), f.count_if(f.col("begins").isNull()).alias("ends"), f.min("broken")
    )
    gap_start = f.when((f.col("ends") == 0) & (f.col("at") != after), f.col("begins"))
    first_gap, last_position = boundaries.agg(f.min(f.least(gap_start, f.col("min(broken)"))), f.max("at")).collect()[0]
    return first_gap, last_position

"""Entities and their history: the rows of the REST read model, with times next to their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from annals.spark_projections.analysis.events import owner_columns
from annals.spark_projections.read_model import computed_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def entities(log: DataFrame, asof: int | None = None) -> DataFrame:
    """One row for each live entity at the end of the log, or after the last interaction that ended by `asof`."""
    log_until = log if asof is None else log.where(f.col("last") <= asof)
    return entities_history(log_until).where(f.col("until").isNull()).drop("until", "until_time")


def entities_history(log: DataFrame) -> DataFrame:
    """One row for each state that an entity ever had; `until` is null for current states."""
    return states(log).drop("stream", "private")


def states(log: DataFrame) -> DataFrame:
    """`entities_history` with the stream of each entity, and its private members as JSON text."""
    # Joined on `since`, not on `until`: that is null for all live entities, which would meet on one executor.
    time = f.col("time").cast("timestamp")
    successors = log.select("stream", (f.col("revision") - 1).alias("revision"), time.alias("until_time"))
    event_times = log.select("stream", "revision", f.col("position").alias("since"), time.alias("since_time"))
    times = event_times.join(successors, ["stream", "revision"], "left").drop("stream", "revision")
    rows = computed_rows.entity_rows(log).drop("born", "meta").join(times, "since")
    return rows.select(
        f.lower("xid").alias("stream"),
        "xid",
        "type",
        *owner_columns("xid"),
        _parent_column("xid"),
        f.substring_index("xid", "/", -1).alias("id"),
        "epoch",
        timestamp_column("createdat"),
        timestamp_column("modifiedat"),
        *("attributes", "private", "document", "since", "since_time", "until", "until_time"),
    )


def _parent_column(column: str) -> Column:
    """The xid of the owner, under `parent`; null for the registry."""
    owner = f.regexp_extract(column, "(.*)/[^/]+/[^/]+$", 1)
    return f.when(f.col(column) != "/", f.when(owner == "", "/").otherwise(owner)).alias("parent")


def timestamp_column(column: str) -> Column:
    """A client's time as a timestamp, under its own name; null for none, and for a leap second, which Spark lacks."""
    return f.col(column).try_cast("timestamp").alias(column)

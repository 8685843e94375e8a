"""Entities and their history: the rows of the REST read model, with times next to their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from annals.spark_projections.analysis.entity_rows import live_events, rows_of_events
from annals.spark_projections.analysis.events import owner_columns

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
    return states_of_events(state_events(log))


def state_events(log: DataFrame) -> DataFrame:
    """The events that lead to the states, each with position, time and topic of the one that ends its state."""
    return live_events(log, "time", "topic")


def states_of_events(events: DataFrame) -> DataFrame:
    """`states` of some `state_events`."""
    return rows_of_events(events, ["time", "until_time"]).select(
        f.lower("xid").alias("stream"),
        "xid",
        "type",
        *owner_columns("xid"),
        _parent_column("xid"),
        f.substring_index("xid", "/", -1).alias("id"),
        "epoch",
        timestamp_column("createdat"),
        timestamp_column("modifiedat"),
        *("attributes", "private", "document", "since", f.col("time").cast("timestamp").alias("since_time")),
        *("until", f.col("until_time").cast("timestamp").alias("until_time")),
    )


def _parent_column(column: str) -> Column:
    """The xid of the owner, under `parent`; null for the registry."""
    owner = f.regexp_extract(column, "(.*)/[^/]+/[^/]+$", 1)
    return f.when(f.col(column) != "/", f.when(owner == "", "/").otherwise(owner)).alias("parent")


def timestamp_column(column: str) -> Column:
    """A client's time as a timestamp, under its own name; null for none, and for a leap second, which Spark lacks."""
    return f.col(column).try_cast("timestamp").alias(column)

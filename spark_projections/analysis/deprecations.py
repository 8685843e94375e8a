"""Deprecations of Groups and Resources, from the setting of `deprecated` until its withdrawal or the entity's end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from annals.spark_projections.analysis.events import (
    STRICT_JSON,
    events_with_state,
    is_outside_tree,
    owner_columns,
    xid_depth,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_GROUP_SCHEMA: Final = "attributes struct<deprecated string>"
_RESOURCE_SCHEMA: Final = "attributes struct<meta struct<deprecated string>>"
_DEPRECATED_SCHEMA: Final = "effective string, removal string, alternative string, documentation string"


def deprecations(log: DataFrame) -> DataFrame:
    """One row for each time that an entity became deprecated, with the details that it last stated.

    `withdrawn` or `removed` is the position of its end; both are null while it lasts.
    """
    deprecatable = ~is_outside_tree("stream") & xid_depth("stream").isin(2, 4)
    deprecation_events = events_with_state(log.where(deprecatable)).withColumn("said", _deprecated())
    previous_values = deprecation_events.select(
        "stream", (f.col("revision") + 1).alias("revision"), f.col("said").alias("before")
    )
    transitions = deprecation_events.join(previous_values, ["stream", "revision"], "left").where(
        ~f.col("said").eqNullSafe(f.col("before"))
    )
    # Only the few events that changed `deprecated` are left, so the window over a stream holds little.
    stream_window = Window.partitionBy("stream").orderBy("position")
    span_number = f.count_if(f.col("before").isNull()).over(stream_window).alias("begun")
    spans = transitions.select("*", span_number).groupBy("stream", "begun")
    return (
        spans.agg(*_span_columns())
        .select("*", f.from_json("stated", _DEPRECATED_SCHEMA, STRICT_JSON).alias("last"))
        .select(
            "xid",
            "type",
            *owner_columns("xid"),
            *("deprecated", "deprecated_time", "deprecated_caller"),
            f.col("last.effective").try_cast("timestamp").alias("effective"),
            f.col("last.removal").try_cast("timestamp").alias("removal"),
            "last.alternative",
            "last.documentation",
            *("withdrawn", "withdrawn_time", "removed", "removed_time"),
        )
    )


def _deprecated() -> Column:
    """The JSON text of `deprecated`; null where there is none, and for a deleted entity."""
    group = f.from_json("state", _GROUP_SCHEMA, STRICT_JSON)["attributes"]["deprecated"]
    resource = f.from_json("state", _RESOURCE_SCHEMA, STRICT_JSON)["attributes"]["meta"]["deprecated"]
    return f.when(xid_depth("stream") == 2, group).otherwise(resource)


def _span_columns() -> list[Column]:
    is_ended, is_deleted = f.col("said").isNull(), f.col("kind") == "deleted"
    return [
        f.min_by("xid", "position").alias("xid"),
        f.min_by("type", "position").alias("type"),
        f.min("position").alias("deprecated"),
        f.min("time").alias("deprecated_time"),
        f.min_by("caller", "position").alias("deprecated_caller"),
        f.max_by("said", f.when(~is_ended, f.col("position"))).alias("stated"),
        f.max(f.when(is_ended & ~is_deleted, f.col("position"))).alias("withdrawn"),
        f.max(f.when(is_ended & ~is_deleted, f.col("time"))).alias("withdrawn_time"),
        f.max(f.when(is_deleted, f.col("position"))).alias("removed"),
        f.max(f.when(is_deleted, f.col("time"))).alias("removed_time"),
    ]

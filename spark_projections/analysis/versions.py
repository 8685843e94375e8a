"""Versions, live and deleted: one row from creation to deletion, with the last attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from annals.spark_projections.analysis.events import STRICT_JSON, events_with_state, xid_depth
from annals.spark_projections.analysis.states import entities_history

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_STRING_ATTRIBUTES: Final = (
    "ancestorid",
    "name",
    "contenttype",
    "format",
    "formatvalidatedreason",
    "compatibilityvalidatedreason",
)
_BOOLEAN_ATTRIBUTES: Final = ("isdefault", "formatvalidated", "compatibilityvalidated")
_ATTRIBUTES_SCHEMA: Final = ", ".join(
    [*(f"{name} string" for name in _STRING_ATTRIBUTES), *(f"{name} boolean" for name in _BOOLEAN_ATTRIBUTES)]
)

_STATE_COLUMNS: Final = ("document", "createdat", "modifiedat")
#: Columns from the event that created a Version, and from the one that ended it.
_CREATION_COLUMNS: Final = {"position": "born", "time": "born_time", "caller": "born_caller"}
_DELETION_COLUMNS: Final = {"position": "gone", "time": "gone_time", "caller": "gone_caller", "reason": "reason"}


def versions(log: DataFrame) -> DataFrame:
    """One row for each Version ever created; a Version that was deleted and created again has one row for each life."""
    version_log = log.where(xid_depth("stream") == 6)
    lifetimes, states = _lifetimes(version_log), entities_history(version_log).withColumn("stream", f.lower("xid"))
    # The last state of a life is the state that the deletion replaces.
    same_life = (lifetimes["stream"] == states["stream"]) & lifetimes["gone"].eqNullSafe(states["until"])
    return (
        states.join(lifetimes, same_life)
        .select("*", f.from_json("attributes", _ATTRIBUTES_SCHEMA, STRICT_JSON).alias("stated"))
        .select(
            "xid",
            "groupxid",
            "resourcexid",
            *_id_columns("xid"),
            "epoch",
            "stated.*",
            *_STATE_COLUMNS,
            *_CREATION_COLUMNS.values(),
            *_DELETION_COLUMNS.values(),
        )
    )


def _id_columns(xid: str) -> list[Column]:
    parts = f.split(xid, "/")
    return [parts[index].alias(name) for index, name in ((2, "groupid"), (4, "resourceid"), (6, "versionid"))]


def _lifetimes(log: DataFrame) -> DataFrame:
    """One row for each creation in a stream, with the deletion that follows; null where none does."""
    # Only creations and deletions, without their states, go through the window.
    lifecycle_events = events_with_state(log).where(f.col("kind").isin("created", "deleted"))
    following_event = (
        f.lead(f.struct(*_DELETION_COLUMNS)).over(Window.partitionBy("stream").orderBy("position")).alias("next")
    )
    creations = lifecycle_events.select(
        "stream", "kind", *(f.col(name).alias(alias) for name, alias in _CREATION_COLUMNS.items()), following_event
    )
    deletion_columns = (f.col("next")[name].alias(alias) for name, alias in _DELETION_COLUMNS.items())
    return creations.where(f.col("kind") == "created").select("stream", *_CREATION_COLUMNS.values(), *deletion_columns)

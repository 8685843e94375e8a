"""Versions, live and deleted: one row from creation to deletion, with the last attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from spark_projections.analysis.events import STRICT_JSON, events_with_state, xid_depth
from spark_projections.analysis.states import entities_history

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXTS: Final = ("ancestorid", "name", "contenttype", "format", "formatvalidatedreason", "compatibilityvalidatedreason")
_FLAGS: Final = ("isdefault", "formatvalidated", "compatibilityvalidated")
_ATTRIBUTES: Final = ", ".join([*(f"{name} string" for name in _TEXTS), *(f"{name} boolean" for name in _FLAGS)])

_OWN: Final = ("document", "createdat", "modifiedat")
#: Columns from the event that created a Version, and from the one that ended it.
_BORN: Final = {"position": "born", "time": "born_time", "caller": "born_caller"}
_GONE: Final = {"position": "gone", "time": "gone_time", "caller": "gone_caller", "reason": "reason"}


def versions(log: DataFrame) -> DataFrame:
    """One row for each Version ever created; a Version that was deleted and created again has one row for each life."""
    version_log = log.where(xid_depth("stream") == 6)
    lifetimes, states = _lives(version_log), entities_history(version_log).withColumn("stream", f.lower("xid"))
    # The last state of a life is the state that the deletion replaces.
    same_life = (lifetimes["stream"] == states["stream"]) & lifetimes["gone"].eqNullSafe(states["until"])
    return (
        states.join(lifetimes, same_life)
        .select("*", f.from_json("attributes", _ATTRIBUTES, STRICT_JSON).alias("stated"))
        .select(
            "xid", "groupxid", "resourcexid", *_ids("xid"), "epoch", "stated.*", *_OWN, *_BORN.values(), *_GONE.values()
        )
    )


def _ids(xid: str) -> list[Column]:
    parts = f.split(xid, "/")
    return [parts[index].alias(name) for index, name in ((2, "groupid"), (4, "resourceid"), (6, "versionid"))]


def _lives(log: DataFrame) -> DataFrame:
    """One row for each creation in a stream, with the deletion that follows; null where none does."""
    # Only creations and deletions, without their states, go through the window.
    lifecycle_events = events_with_state(log).where(f.col("kind").isin("created", "deleted"))
    following_event = f.lead(f.struct(*_GONE)).over(Window.partitionBy("stream").orderBy("position")).alias("next")
    creations = lifecycle_events.select(
        "stream", "kind", *(f.col(name).alias(alias) for name, alias in _BORN.items()), following_event
    )
    deletion_columns = (f.col("next")[name].alias(alias) for name, alias in _GONE.items())
    return creations.where(f.col("kind") == "created").select("stream", *_BORN.values(), *deletion_columns)

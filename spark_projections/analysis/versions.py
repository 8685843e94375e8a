"""Versions, living and gone: a row from each one's creation to its end, with what it said last."""

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
#: What is told of the event that created a Version, and of the one that ended it.
_BORN: Final = {"position": "born", "time": "born_time", "caller": "born_caller"}
_GONE: Final = {"position": "gone", "time": "gone_time", "caller": "gone_caller", "reason": "reason"}


def versions(log: DataFrame) -> DataFrame:
    """One row for each Version that was ever created; one that came back after its deletion has a row for each life."""
    known = log.where(xid_depth("stream") == 6)
    lives, states = _lives(known), entities_history(known).withColumn("stream", f.lower("xid"))
    # The last state of a life is the one that its end replaces.
    same = (lives["stream"] == states["stream"]) & lives["gone"].eqNullSafe(states["until"])
    return (
        states.join(lives, same)
        .select("*", f.from_json("attributes", _ATTRIBUTES, STRICT_JSON).alias("stated"))
        .select(
            "xid", "groupxid", "resourcexid", *_ids("xid"), "epoch", "stated.*", *_OWN, *_BORN.values(), *_GONE.values()
        )
    )


def _ids(xid: str) -> list[Column]:
    parts = f.split(xid, "/")
    return [parts[at].alias(name) for at, name in ((2, "groupid"), (4, "resourceid"), (6, "versionid"))]


def _lives(log: DataFrame) -> DataFrame:
    """From each creation in a stream to the deletion after it, null where there is none."""
    # Creations and deletions alone, and nothing of what they hold, go through the window.
    ends = events_with_state(log).where(f.col("kind").isin("created", "deleted"))
    next = f.lead(f.struct(*_GONE)).over(Window.partitionBy("stream").orderBy("position")).alias("next")
    begun = ends.select("stream", "kind", *(f.col(name).alias(alias) for name, alias in _BORN.items()), next)
    ended = (f.col("next")[name].alias(alias) for name, alias in _GONE.items())
    return begun.where(f.col("kind") == "created").select("stream", *_BORN.values(), *ended)

"""Versions, living and gone: a row from each one's creation to its end, with what it said last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from spark_projections.analysis.facts import STRICT, depth, facts
from spark_projections.analysis.states import entities_history

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXTS: Final = ("ancestorid", "name", "contenttype", "format", "formatvalidatedreason", "compatibilityvalidatedreason")
_FLAGS: Final = ("isdefault", "formatvalidated", "compatibilityvalidated")
_ATTRIBUTES: Final = ", ".join([*(f"{name} string" for name in _TEXTS), *(f"{name} boolean" for name in _FLAGS)])


def versions(log: DataFrame) -> DataFrame:
    """One row for each Version that was ever created; one that came back after its deletion has a row for each life."""
    lives = _lives(log.where(depth("stream") == 6))
    states = entities_history(log).where(depth("xid") == 6).withColumn("stream", f.lower("xid"))
    # The last state of a life is the one that its end replaces.
    same = (lives["stream"] == states["stream"]) & lives["gone"].eqNullSafe(states["until"])
    read = f.from_json(states["attributes"], _ATTRIBUTES, STRICT)
    return (
        states.withColumn("stated", read)
        .join(lives, same)
        .select(
            "xid",
            "groupxid",
            "resourcexid",
            *_ids("xid"),
            "epoch",
            *(f.col("stated")[name].alias(name) for name in (*_TEXTS, *_FLAGS)),
            *("document", "createdat", "modifiedat"),
            *("born", "born_time", "born_caller", "gone", "gone_time", "gone_caller", "reason"),
        )
    )


def _ids(xid: str) -> list[Column]:
    parts = f.split(xid, "/")
    return [parts[at].alias(name) for at, name in ((2, "groupid"), (4, "resourceid"), (6, "versionid"))]


def _lives(log: DataFrame) -> DataFrame:
    """From each creation in a stream to the deletion after it, null where there is none."""
    # Creations and deletions alone, and nothing of what they hold, go through the window.
    ends = facts(log).where(f.col("kind").isin("created", "deleted"))
    told = ("position", "time", "caller", "reason")
    next = f.lead(f.struct(*told)).over(Window.partitionBy("stream").orderBy("position")).alias("next")
    return (
        ends.select("stream", "kind", *told, next)
        .where(f.col("kind") == "created")
        .select(
            "stream",
            *(
                f.col(old).alias(new)
                for old, new in (("position", "born"), ("time", "born_time"), ("caller", "born_caller"))
            ),
            *(
                f.col("next")[old].alias(f"gone{new}")
                for old, new in (("position", ""), ("time", "_time"), ("caller", "_caller"))
            ),
            f.col("next")["reason"].alias("reason"),
        )
    )

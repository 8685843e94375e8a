"""Versions, live and deleted: one row from creation to deletion, with the last attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from annals.domain.registry.events import EntityDeleted
from annals.spark_projections.analysis.events import STRICT_JSON, events_with_state, xid_depth
from annals.spark_projections.analysis.states import state_events, states_of_events

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
    # The last state of a life is the state that the deletion replaces.
    last_states = states_of_events(state_events(version_log).where(_is_last()))
    lifetimes = _lifetimes(version_log)
    same_life = (lifetimes["stream"] == last_states["stream"]) & lifetimes["gone"].eqNullSafe(last_states["until"])
    return (
        last_states.join(lifetimes, same_life)
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


def _is_last() -> Column:
    """Whether a state was in force until the deletion of its entity, or is still."""
    return f.col("until").isNull() | f.col("until_topic").startswith(f"{EntityDeleted.TOPIC.partition(':')[0]}:")


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

"""One row for each interaction, and one for each event with the data of its interaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from annals.domain.registry.events import TOPICS
from annals.domain.values import xid as xids
from annals.spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: `created`, `updated`, `refreshed` or `deleted`, by topic.
_KINDS: Final = {topic: kind.__name__.removeprefix("Entity").lower() for topic, kind in TOPICS.items()}
_STATE_SCHEMA: Final = (
    "xid string, type string, epoch bigint, changed array<string>, deprecated_changed array<string>, reason string"
)
_UNBOUNDED: Final = str(2**31 - 1)
#: Options of `from_json`. By default Spark returns null for unreadable text, and limits lengths and nesting to less
#: than the log may contain.
STRICT_JSON: Final = {
    "mode": "FAILFAST",
    "maxNumLen": _UNBOUNDED,
    "maxStringLen": _UNBOUNDED,
    "maxNestingDepth": _UNBOUNDED,
}


def interactions(log: DataFrame) -> DataFrame:
    """One row for each interaction: its caller, command and time, and the range of its positions."""
    return log.where(f.col("position") == f.col("last")).select(
        "first",
        "last",
        (f.col("last") - f.col("first") + 1).alias("events"),
        f.col("time").cast("timestamp").alias("time"),
        *("caller", "command", "xregcorrelationid", "registry_url", "chain", "statehash"),
        *("authenticator", "keyid"),
    )


def events(log: DataFrame) -> DataFrame:
    """One row for each event, including those of subscriptions and replication links.

    Raises, when it is read: an error of Spark for a damaged event, or one that a newer program wrote.
    """
    return events_with_state(log).drop("stream", "topic", "state")


def events_with_state(log: DataFrame) -> DataFrame:
    """`events` with the stream, topic and stored state of each event; older topics are upcast."""
    parsed_log = upcast_log(log).withColumn("read", f.from_json("state", _STATE_SCHEMA, STRICT_JSON))
    return parsed_log.select(
        "position",
        f.col("time").cast("timestamp").alias("time"),
        *("read.xid", "read.type"),
        *owner_columns("read.xid"),
        kind_column().alias("kind"),
        *("read.epoch", "revision", "read.changed", "read.deprecated_changed", "read.reason"),
        *("caller", "command", "xregcorrelationid", "first", "last"),
        *("stream", "topic", "state"),
    )


def kind_column() -> Column:
    """The kind of an event, by its topic; an error for an unknown topic."""
    column = f.lit(None).cast("string")
    for topic, name in _KINDS.items():
        column = f.when(f.col("topic") == topic, name).otherwise(column)
    error_message = f.concat(f.lit("an event of the kind "), "topic", f.lit(" is unknown to this program"))
    return f.coalesce(column, f.raise_error(error_message))


def owner_columns(xid: str) -> tuple[Column, Column]:
    """`groupxid` and `resourcexid`: the Group and the Resource that an entity is or belongs to, null where none is.

    xid: the column with the xid of the entity.
    """
    is_in_tree = ~is_outside_tree(xid)
    return (
        f.when(is_in_tree, _xid_prefix(xid, 2)).alias("groupxid"),
        f.when(is_in_tree, _xid_prefix(xid, 4)).alias("resourcexid"),
    )


def is_outside_tree(column: str) -> Column:
    """Whether an xid or a stream is outside of the registry's tree, such as a subscription."""
    condition = f.lit(False)
    for prefix in xids.OUTSIDE_TREE:
        condition = condition | f.col(column).startswith(prefix)
    return condition


def xid_depth(column: str) -> Column:
    """The number of segments of an xid or a stream: two for a Group, four for a Resource, six for a Version."""
    return f.size(f.split(column, "/")) - 1


def _xid_prefix(xid: str, segments: int) -> Column:
    return f.when(xid_depth(xid) >= segments, f.substring_index(xid, "/", segments + 1))

"""How the rows of each table are computed from a part of the log.

A part consists of whole interactions. The lake's own table `log` has all earlier events, so a part may look back; no
other state is needed, and a table that is behind catches up by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as f

from annals.domain.registry.events import EntityCreated, EntityDeleted
from annals.spark_projections.analysis.changes import changes as changes_of
from annals.spark_projections.analysis.events import interactions as interactions_of
from annals.spark_projections.analysis.events import is_outside_tree, owner_columns, xid_depth
from annals.spark_projections.analysis.states import states
from annals.spark_projections.analysis.versions import versions as versions_of
from annals.spark_projections.lake.documents import fields, verdicts
from annals.spark_projections.log_schema import LOG_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: The column that marks rows to remove from a table with a key.
REMOVED: Final = "_removed"

#: Parts with at most so many events are sent to all executors, so that looking back moves no other event.
_SMALL_PART: Final = 100_000
_VERSION_DEPTH: Final = 6
_DOCUMENT: Final = "$.private.document"
_FORMAT: Final = "$.attributes.format"
_ANCESTOR: Final = "$.attributes.ancestorid"
_CREATED: Final = f"{EntityCreated.TOPIC.partition(':')[0]}:"


class LogPart(NamedTuple):
    """A part of the log. new: its events. log: all events up to its end. documents: those that the log refers to.

    is_first: whether the log begins with it, so that nothing has to be looked up.
    """

    new: DataFrame
    log: DataFrame
    documents: DataFrame
    is_first: bool = False


def log(part: LogPart) -> DataFrame:
    """The events themselves, as segments have them."""
    return part.new.select(*LOG_SCHEMA.names, f.left("time", f.lit(7)).alias("month"))


def document_hashes(new: DataFrame) -> DataFrame:
    """The hashes of the documents that events refer to, as `sha256`."""
    # Most events refer to none, and are not parsed.
    referring = new.where(f.col("state").contains('"document":'))
    legacy = f.get_json_object("state", "$.private.facade.document")
    found = f.coalesce(f.get_json_object("state", _DOCUMENT), legacy)
    return referring.select(found.alias("sha256")).where(f.col("sha256").isNotNull()).distinct()


def interactions(part: LogPart) -> DataFrame:
    """One row for each interaction."""
    return with_month(interactions_of(part.new))


def entities(part: LogPart) -> DataFrame:
    """The last state of each entity that the part touched, or a mark where it was deleted."""
    last = f.max_by(f.struct(*part.new.columns), "position").alias("last")
    newest = part.new.where(~is_outside_tree("stream")).groupBy("stream").agg(last).select("last.*")
    deleted = newest.where(_is_deletion()).select(
        "stream", f.get_json_object("state", "$.type").alias("type"), f.lit(True).alias(REMOVED)
    )
    live = states(newest).drop("until", "until_time").withColumn(REMOVED, f.lit(False))
    return live.unionByName(deleted, allowMissingColumns=True)


def entity_history(part: LogPart) -> DataFrame:
    """The states that begin in the part, and those that it ends."""
    return states(part.new.unionByName(predecessors(part)))


def changes(part: LogPart) -> DataFrame:
    """One row for each value that the part changed."""
    before = predecessors(part).unionByName(part.new)
    found = changes_of(part.new, before)
    documents = _document_steps(part.new, before)
    verdict = verdicts(documents, part.documents, "position").withColumn("of", f.lit("document"))
    return with_month(found.join(verdict, ["position", "of"], "left"))


def versions(part: LogPart) -> DataFrame:
    """The Versions of the Resources that the part touched: all of them, because they refer to their ancestors."""
    touched = part.new.where(xid_depth("stream") == _VERSION_DEPTH).select(_resource("stream")).distinct()
    log_rows = part.log.where(xid_depth("stream") == _VERSION_DEPTH).withColumn("resource", _resource("stream"))
    log_rows = log_rows.join(f.broadcast(touched), "resource", "left_semi").drop("resource")
    found = versions_of(log_rows).withColumn("stream", f.lower("xid"))
    verdict = verdicts(_births(log_rows), part.documents, "born")
    return found.join(_sizes(part.documents), "document", "left").join(verdict, "born", "left")


def schema_fields(part: LogPart) -> DataFrame:
    """The fields of each document that a Version has had since the part."""
    steps = _document_steps(part.new, predecessors(part).unionByName(part.new)).where(
        xid_depth("stream") == _VERSION_DEPTH
    )
    is_same = f.col("after").eqNullSafe(f.col("before")) & f.col("after_format").eqNullSafe(f.col("before_format"))
    stated = steps.where(~is_same).select(
        "position",
        f.col("time").cast("timestamp").alias("time"),
        f.get_json_object("state", "$.xid").alias("xid"),
        f.col("after").alias("document"),
        f.col("after_format").alias("format"),
    )
    found = fields(stated, part.documents)
    versionid = f.element_at(f.split("xid", "/"), -1).alias("versionid")
    return with_month(found.select("*", *owner_columns("xid"), versionid))


def with_month(rows: DataFrame) -> DataFrame:
    """Rows with the month of their `time`, such as `2026-11`."""
    return rows.withColumn("month", f.date_format("time", "yyyy-MM"))


def predecessors(part: LogPart) -> DataFrame:
    """The events that the first events of each stream in the part replaced."""
    if part.is_first:
        return part.new.limit(0)
    first_revisions = part.new.groupBy("stream").agg((f.min("revision") - 1).alias("revision")).where("revision > 0")
    small = part.new.limit(_SMALL_PART + 1).count() <= _SMALL_PART
    return part.log.join(
        f.broadcast(first_revisions) if small else first_revisions, ["stream", "revision"], "left_semi"
    ).select(*part.new.columns)


def _document_steps(new: DataFrame, before: DataFrame) -> DataFrame:
    """The events that leave an entity with a document, with document and format before and after each of them."""
    document, format = f.get_json_object("state", _DOCUMENT), f.get_json_object("state", _FORMAT)
    referring = new.where(f.col("state").contains('"document":') & ~_is_deletion())
    after = referring.select(
        *("position", "time", "stream", "revision", "state"), document.alias("after"), format.alias("after_format")
    ).where("after IS NOT NULL")
    earlier = before.select(
        *("stream", (f.col("revision") + 1).alias("revision")),
        document.alias("before"),
        format.alias("before_format"),
    )
    return after.join(earlier, ["stream", "revision"], "left")


def _births(version_log: DataFrame) -> DataFrame:
    """The document of each new Version, and the one that its ancestor had at that time: `born` is the position."""
    documents = version_log.where(~_is_deletion()).select(
        *("position", "last", "stream", "topic", "state"),
        f.get_json_object("state", _DOCUMENT).alias("document"),
        f.get_json_object("state", _FORMAT).alias("format"),
    )
    ancestor = f.concat(_resource("stream"), f.lit("/versions/"), f.lower(f.get_json_object("state", _ANCESTOR)))
    births = documents.where(f.col("topic").startswith(_CREATED)).select(
        f.col("position").alias("born"),
        f.col("last").alias("born_last"),
        f.col("stream").alias("version"),
        ancestor.alias("ancestor"),
        f.col("document").alias("after"),
        f.col("format").alias("after_format"),
    )
    # A request may create an ancestor after its descendants.
    was_there = (f.col("stream") == f.col("ancestor")) & (f.col("position") <= f.col("born_last"))
    latest = f.max_by(f.struct(f.col("document").alias("before"), f.col("format").alias("before_format")), "position")
    return (
        births.where("ancestor <> version")
        .join(documents, was_there)
        .groupBy("born", "after", "after_format")
        .agg(latest.alias("ancestor"))
        .select("born", "after", "after_format", "ancestor.*")
    )


def _sizes(documents: DataFrame) -> DataFrame:
    return documents.select(f.col("sha256").alias("document"), "size")


def _resource(stream: str) -> Column:
    """The part of a Version's stream that is its Resource."""
    return f.substring_index(stream, "/", 5).alias("resource")


def _is_deletion() -> Column:
    return f.col("topic").startswith(f"{EntityDeleted.TOPIC.partition(':')[0]}:")


#: The tables that are functions of a part of the log, by name.
ROWS: Final[dict[str, Callable[[LogPart], DataFrame]]] = {
    table.__name__: table for table in (log, interactions, entities, entity_history, changes, versions, schema_fields)
}

"""How the rows of each table are computed from a part of the log.

A part consists of whole interactions. The lake's own table `log` has all earlier events, so a part may look back; no
other state is needed, and a table that is behind catches up by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as f

from annals.domain.registry.events import EntityCreated, EntityDeleted
from annals.spark_projections.analysis.changes import changed_values, event_pairs
from annals.spark_projections.analysis.events import STRICT_JSON, is_outside_tree, owner_columns, xid_depth
from annals.spark_projections.analysis.events import interactions as interactions_of
from annals.spark_projections.analysis.states import state_events, states_of_events
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
#: What tables about documents need of a state.
_DOCUMENT_STATE: Final = (
    "xid string, attributes struct<format string, ancestorid string>,"
    " private struct<document string, facade struct<document string>>"
)
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
    found = f.coalesce("read.private.document", "read.private.facade.document")
    return _referring(new).select(found.alias("sha256")).where(f.col("sha256").isNotNull()).distinct()


def interactions(part: LogPart) -> DataFrame:
    """One row for each interaction."""
    return with_month(interactions_of(part.new))


def entities(part: LogPart) -> DataFrame:
    """The last state of each entity that the part touched, or a mark where it was deleted."""
    live = state_events(part.new).where(f.col("until").isNull())
    if part.is_first:
        return states_of_events(_in_file_order(live))
    deletions = part.new.where(_is_deletion() & ~is_outside_tree("stream"))
    successors = part.new.select("stream", (f.col("revision") - 1).alias("revision"))
    removed = deletions.join(successors, ["stream", "revision"], "left_anti").select(
        "stream", f.get_json_object("state", "$.type").alias("type"), f.lit(True).alias(REMOVED)
    )
    return states_of_events(live).withColumn(REMOVED, f.lit(False)).unionByName(removed, allowMissingColumns=True)


def entity_history(part: LogPart) -> DataFrame:
    """The states that begin in the part, and those that it ends."""
    if part.is_first:
        return states_of_events(_in_file_order(state_events(part.new)))
    return states_of_events(state_events(part.new.unionByName(predecessors(part))))


def changes(part: LogPart) -> DataFrame:
    """One row for each value that the part changed."""
    before = predecessors(part).unionByName(part.new)
    verdict = verdicts(_document_steps(part.new, before), part.documents, "stream", "revision")
    # All joins by the same columns, so that states are sent around once; and before an event becomes many rows.
    pairs = event_pairs(part.new, before).join(verdict, ["stream", "revision"], "left")
    found = changed_values(_in_ranges(with_month(pairs), "position"), "month", "breaking", "breaking_reason")
    of_document = {name: f.when(f.col("of") == "document", f.col(name)) for name in ("breaking", "breaking_reason")}
    return found.withColumns(of_document)


def versions(part: LogPart) -> DataFrame:
    """The Versions of the Resources that the part touched: all of them, because they refer to their ancestors."""
    log_rows = part.log.where(xid_depth("stream") == _VERSION_DEPTH)
    if not part.is_first:
        touched = part.new.where(xid_depth("stream") == _VERSION_DEPTH).select(_resource("stream")).distinct()
        log_rows = log_rows.withColumn("resource", _resource("stream"))
        log_rows = log_rows.join(_sent_to_all(part, touched), "resource", "left_semi").drop("resource")
    found = versions_of(log_rows).withColumn("stream", f.lower("xid"))
    verdict = verdicts(_births(log_rows), part.documents, "born")
    return found.join(_sizes(part.documents), "document", "left").join(verdict, "born", "left")


def schema_fields(part: LogPart) -> DataFrame:
    """The fields of each document that a Version has had since the part."""
    of_versions = part._replace(new=part.new.where(xid_depth("stream") == _VERSION_DEPTH))
    steps = _document_steps(of_versions.new, predecessors(of_versions).unionByName(of_versions.new))
    is_same = f.col("after").eqNullSafe(f.col("before")) & f.col("after_format").eqNullSafe(f.col("before_format"))
    stated = steps.where(~is_same).select(
        "position",
        f.col("time").cast("timestamp").alias("time"),
        "xid",
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
    return part.log.join(_sent_to_all(part, first_revisions), ["stream", "revision"], "left_semi").select(
        *part.new.columns
    )


def _sent_to_all(part: LogPart, looked_up: DataFrame) -> DataFrame:
    """What is looked up in the log, sent to all executors if the part is small."""
    small = part.new.limit(_SMALL_PART + 1).count() <= _SMALL_PART
    return f.broadcast(looked_up) if small else looked_up


def _in_file_order(events: DataFrame) -> DataFrame:
    """`state_events` in the order of the files of states: before they become rows, which are larger."""
    parts = f.split("stream", "/")
    type = f.concat_ws(".", *(f.get(parts, f.lit(index)) for index in (1, 3, 5)))
    return _in_ranges(events.withColumn("_type", type), "_type", "stream", "position").drop("_type")


def _in_ranges(events: DataFrame, *order: str) -> DataFrame:
    """Events as sorted ranges, one for each partition of a shuffle."""
    # The number is given, because Spark would join ranges that are small in its files, and each event may become many
    # rows.
    partitions = events.sparkSession.conf.get("spark.sql.shuffle.partitions") or "1"
    return events.repartitionByRange(int(partitions), *order).sortWithinPartitions(*order)


def _referring(log: DataFrame) -> DataFrame:
    """The events that refer to a document, with their document state."""
    # Most events refer to none, and are not parsed.
    return _with_document_state(log.where(f.col("state").contains('"document":')))


def _with_document_state(log: DataFrame) -> DataFrame:
    """A log with `read`: the `_DOCUMENT_STATE` of each event."""
    return log.withColumn("read", f.from_json("state", _DOCUMENT_STATE, STRICT_JSON))


def _document_steps(new: DataFrame, before: DataFrame) -> DataFrame:
    """The events that leave an entity with a document, with document and format before and after each of them."""
    after = _referring(new.where(~_is_deletion())).select(
        *("position", "time", "stream", "revision", "read.xid"),
        f.col("read.private.document").alias("after"),
        f.col("read.attributes.format").alias("after_format"),
    )
    earlier = _referring(before).select(
        *("stream", (f.col("revision") + 1).alias("revision")),
        f.col("read.private.document").alias("before"),
        f.col("read.attributes.format").alias("before_format"),
    )
    return after.where("after IS NOT NULL").join(earlier, ["stream", "revision"], "left")


def _births(version_log: DataFrame) -> DataFrame:
    """The document of each new Version, and the one that its ancestor had at that time: `born` is the position."""
    documents = _with_document_state(version_log.where(~_is_deletion())).select(
        *("position", "last", "stream", "topic"),
        f.col("read.private.document").alias("document"),
        f.col("read.attributes.format").alias("format"),
        f.col("read.attributes.ancestorid").alias("ancestorid"),
    )
    ancestor = f.concat(_resource("stream"), f.lit("/versions/"), f.lower("ancestorid"))
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


#: Tables whose rows come in sorted ranges, as their files have them; those with a key only in the first part.
IN_FILE_ORDER: Final = frozenset(each.__name__ for each in (entities, entity_history, changes))
#: The tables that are functions of a part of the log, by name.
ROWS: Final[dict[str, Callable[[LogPart], DataFrame]]] = {
    table.__name__: table for table in (log, interactions, entities, entity_history, changes, versions, schema_fields)
}

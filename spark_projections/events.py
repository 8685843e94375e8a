"""The change events of a log as tables, one for each event family, byte for byte those of the feed `/-/events`.

Each is a function of one stored event and its interaction, whose data is in the same row of the log. So no look-up of
earlier events is needed, no row depends on another, and even a large interaction is processed in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as f

from annals.projections.compat.families import all_event_families
from annals.projections.events.event_families import EventFamily
from annals.projections.log.table_rows import LogTableRow, interaction_of, log_row
from annals.spark_projections.arrow_batches import Batches, arrow_schema, record_batch, spark_columns
from annals.spark_projections.hadoop_paths import hadoop_folder, with_s3a_scheme
from annals.spark_projections.log_schema import LOG_SCHEMA
from annals.spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class EventRow(NamedTuple):
    """One change event as columns.

    position: of the stored event that caused it. sequence: increases within an interaction, with gaps; the order of the
    feed is (position, sequence). id to xregcorrelationid: attributes of the event. event: the whole event as JSON text.
    """

    position: int
    sequence: int
    id: str
    type: str
    source: str
    subject: str
    time: str
    xregcorrelationid: str
    event: str


_SCHEMA: Final = arrow_schema(EventRow)
_ATTRIBUTES: Final = EventRow._fields[2:-1]


def xregistry_events(log: DataFrame, changed: bool = True) -> DataFrame:
    """One row for each xRegistry event, see EventRow; `time` is a timestamp.

    changed: whether events list the changed attributes, like the setting `ANNALS_EVENT_CHANGES` of the feed.
    Raises, when it is read: an error of Spark for an event that a newer program wrote.
    """
    return _family_events(log, "xregistry", changed)


def schemaregistry_events(log: DataFrame) -> DataFrame:
    """One row for each event of the legacy API Schema Registry 0.2, as `xregistry_events` has them."""
    return _family_events(log, "schemaregistry")


def messagecatalog_events(log: DataFrame) -> DataFrame:
    """One row for each event of the legacy API Message Catalog 0.1, as `xregistry_events` has them."""
    return _family_events(log, "messagecatalog")


def _family_events(log: DataFrame, family: str, changed: bool = True) -> DataFrame:
    event_rows = (
        upcast_log(log)
        .select(*LOG_SCHEMA.names)
        .mapInArrow(partial(_to_events, family, changed), spark_columns(_SCHEMA))
    )
    return event_rows.withColumn("time", f.col("time").cast("timestamp"))


class EventDestination(NamedTuple):
    """The destination of written events. folder: a URI that Spark can write to. changed: see `xregistry_events`."""

    folder: str
    changed: bool = True


def write_events(log: DataFrame, destination: EventDestination) -> None:
    """Writes the events as Parquet files into a new folder; each file is in the order of the feed.

    The folder is complete only if it contains a file `_SUCCESS`.
    Raises: FileExistsError.
    """
    refuse_existing(log.sparkSession, destination.folder)
    ordered = xregistry_events(log, destination.changed).sortWithinPartitions("position", "sequence")
    ordered.write.mode("errorifexists").parquet(with_s3a_scheme(destination.folder))


def refuse_existing(spark: SparkSession, folder: str) -> None:
    """Raises: FileExistsError where the folder exists, because written files must never change."""
    target = hadoop_folder(spark, folder)
    if target.filesystem.exists(target.root):
        raise FileExistsError(f"{folder} exists already; name a new folder")


def _to_events(family: str, changed: bool, batches: Batches) -> Batches:
    [events] = [each for each in all_event_families(changed) if each.name == family]
    for batch in batches:
        rows = map(LogTableRow, *(batch.column(name).to_pylist() for name in LogTableRow._fields))
        yield record_batch(list(_event_rows(events, rows)), _SCHEMA)


def _event_rows(events: EventFamily, rows: Iterable[LogTableRow]) -> Iterator[EventRow]:
    for first, row_group in groupby(rows, lambda row: row.first):
        interaction_rows, previous_position = list(row_group), 0
        for message in events.messages(interaction_of(interaction_rows[0]), map(log_row, interaction_rows)):
            # One position has at most two events.
            sequence = 2 * (message.position - first) + (message.position == previous_position)
            previous_position = message.position
            attribute_values = [getattr(message, name) for name in _ATTRIBUTES]
            yield EventRow._make((message.position, sequence, *attribute_values, message.json().decode()))

"""The xRegistry events that the log comes to, as a table: those of the feed `/-/events`, byte for byte.

Each is a function of one stored event and of the facts of its interaction, which stand beside it in the log's rows. So
nothing of the past is looked up, no row waits for another, and the work spreads however large an interaction is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple, get_type_hints

import pyarrow as pa
from pyspark.sql import functions as f

from projections.events.xregistry_events import XRegistryEvents
from projections.log.table_rows import LogTableRow, interaction_of, log_row
from spark_projections.hadoop_paths import hadoop_folder, with_s3a_scheme
from spark_projections.log_schema import LOG_SCHEMA
from spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterable[pa.RecordBatch]


class EventRow(NamedTuple):
    """One event as columns.

    position: of the stored event that it tells of. sequence: grows from event to event of an interaction, with gaps, so
    the two make the order of the feed. id to xregcorrelationid: attributes of the event. event: all of it as JSON text.
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


_SCHEMA: Final = pa.schema(
    [pa.field(name, pa.int64() if kind is int else pa.string()) for name, kind in get_type_hints(EventRow).items()]
)
_ATTRIBUTES: Final = EventRow._fields[2:-1]
_COLUMNS: Final = ", ".join(f"{each.name} {'bigint' if each.type == pa.int64() else 'string'}" for each in _SCHEMA)


def xregistry_events(log: DataFrame, changed: bool = True) -> DataFrame:
    """One row for each xRegistry event, see EventRow; `time` is a timestamp.

    changed: whether events say which attributes changed, as the setting `ANNALS_EVENT_CHANGES` has it for the feed.
    Raises, when it is read: an error of Spark for an event that a newer program wrote.
    """
    made = upcast_log(log).select(*LOG_SCHEMA.names).mapInArrow(partial(_to_events, changed), _COLUMNS)
    return made.withColumn("time", f.col("time").cast("timestamp"))


class EventDestination(NamedTuple):
    """Where events are written. folder: a URI that Spark reaches. changed: see `xregistry_events`."""

    folder: str
    changed: bool = True


def write_events(log: DataFrame, destination: EventDestination) -> None:
    """Writes the events as Parquet files into a new folder; each file is in the order of the feed.

    Without a file `_SUCCESS` in it, writing has not come to its end.
    Raises: FileExistsError.
    """
    refuse_existing(log.sparkSession, destination.folder)
    ordered = xregistry_events(log, destination.changed).sortWithinPartitions("position", "sequence")
    ordered.write.mode("errorifexists").parquet(with_s3a_scheme(destination.folder))


def refuse_existing(spark: SparkSession, folder: str) -> None:
    """Raises: FileExistsError for a folder that is there: what was once written stays as it is."""
    there = hadoop_folder(spark, folder)
    if there.files.exists(there.root):
        raise FileExistsError(f"{folder} is there already")


def _to_events(changed: bool, batches: Batches) -> Batches:
    events = XRegistryEvents(changed)
    for batch in batches:
        rows = map(LogTableRow, *(batch.column(name).to_pylist() for name in LogTableRow._fields))
        columns = list(zip(*_event_rows(events, rows), strict=True)) or [()] * len(_SCHEMA)
        arrays = [pa.array(column, each.type) for column, each in zip(columns, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _event_rows(events: XRegistryEvents, rows: Iterable[LogTableRow]) -> Iterator[EventRow]:
    for first, found in groupby(rows, lambda row: row.first):
        some, before = list(found), 0
        for message in events.messages(interaction_of(some[0]), map(log_row, some)):
            # Of one position there are two at most.
            sequence = 2 * (message.position - first) + (message.position == before)
            before = message.position
            named = [getattr(message, name) for name in _ATTRIBUTES]
            yield EventRow._make((message.position, sequence, *named, message.json().decode()))

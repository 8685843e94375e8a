"""The rows of the read model that the events of whole streams have.

A row of the read model is a function of one event, and ends where the next event of its stream begins. What the legacy
APIs and Confluent's look up of a Version is a function of all its events. So the events of a stream come side by side,
and each is parsed once for the rows of all tables. One task has all events of a stream, but
only those of a Version at once in its memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from annals.domain.compat.legacy_apis import LEGACY_APIS
from annals.domain.compat.publications import fold_publications
from annals.domain.confluent.schema_versions import fold_schema_versions
from annals.domain.confluent.subjects import GROUPS
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.domain.values import xid as xids
from annals.projections.database.drivers import Values
from annals.projections.entities.leaves import UNINDEXED_TYPES, leaves
from annals.projections.entities.references import reference_rows
from annals.projections.entities.rows import EntityRow, entity_row, publication_row, row_values
from annals.projections.entities.schema_version_rows import reference_rows_of, schema_version_row
from annals.projections.log.table_rows import event_of
from annals.spark_projections.arrow_batches import Batches
from annals.spark_projections.partitions import partition_count
from annals.spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The tables that rows are for, by their names in `ReadModelTables`; `attribute` and `path` are made of leaves.
TABLES: Final = ("entity", "history", "reference", "published", "schema_version", "schema_reference")
#: States whose rows are handed on together.
_BATCH_STATES: Final = 5000
_PUBLISHED_GROUPS: Final = frozenset(family.groups for family in LEGACY_APIS) | {GROUPS}
#: Parts of a Version's stream id, split at `/`; the first is empty.
_VERSION_SEGMENTS: Final = 7


class RowBatch:
    """Some thousands of states and what belongs to them.

    rows: by table, one of `TABLES`. leaves: of those in `entity`, values and id keys by type and path.
    """

    def __init__(self, max_leaves: int) -> None:
        self.rows: dict[str, list[Values]] = {name: [] for name in TABLES}
        self.leaves: dict[tuple[str, str], list[tuple[bytes, str]]] = {}
        self._max_leaves = max_leaves

    @property
    def is_full(self) -> bool:
        """Whether there are enough to hand on."""
        return len(self.rows["entity"]) + len(self.rows["history"]) >= _BATCH_STATES

    def add_state(self, event: EntityEvent, position: int, until: int | None) -> None:
        """Adds the rows of one event. until: the position of the next one of its stream."""
        row = entity_row(event, position)
        if until is None:
            self.rows["entity"].append(row_values(row))
            self._add_leaves(row, event.attributes)
        else:
            self.rows["history"].append((*row_values(row), until))
        self.rows["reference"] += reference_rows(row, until)

    def _add_leaves(self, row: EntityRow, attributes: Mapping[str, Any]) -> None:
        if row.type not in UNINDEXED_TYPES:
            for path, value in leaves(attributes, self._max_leaves).items():
                self.leaves.setdefault((row.type, path), []).append((value, row.id_key))

    def add_version(self, events: Sequence[tuple[int, EntityEvent]]) -> None:
        """Adds what the legacy APIs and Confluent's look up of a Version. events: all of its stream."""
        self.rows["published"] += map(publication_row, fold_publications(events))
        for row in map(schema_version_row, fold_schema_versions(events)):
            self.rows["schema_version"].append(row)
            self.rows["schema_reference"] += reference_rows_of(row)


def events_by_stream(log: DataFrame, events: int) -> DataFrame:
    """The events of each stream in one partition, side by side in their order. events: the number of all."""
    shuffled = _event_columns(log).repartition(_partitions(log, events), "stream")
    return upcast_log(shuffled.sortWithinPartitions("stream", "revision"))


def events_in_tree_order(log: DataFrame, events: int) -> DataFrame:
    """As `events_by_stream`, in the order of tree keys within and across partitions."""
    # The key is a column, because Spark would evaluate an expression for every comparison of two rows.
    with_key = _event_columns(log).withColumn("key", f.translate("stream", "/", "!"))
    shuffled = with_key.repartitionByRange(_partitions(log, events), "key")
    return upcast_log(shuffled.sortWithinPartitions("key", "revision").drop("key"))


def _event_columns(log: DataFrame) -> DataFrame:
    return log.select("position", "stream", "revision", "topic", "state")


def _partitions(log: DataFrame, events: int) -> int:
    # Spark looks at the size of what is sent around only, but each event is much work.
    return partition_count(events, log.sparkSession.sparkContext.defaultParallelism)


def row_batches(batches: Batches, max_leaves: int) -> Iterator[RowBatch]:
    """The rows of all events in batches of whole streams. max_leaves: maximum index leaves of one entity."""
    rows = RowBatch(max_leaves)
    for stream, events in _streams(batches):
        if xids.is_outside_tree(stream):
            continue
        if _may_be_published(stream):
            events = all_events = list(events)
            rows.add_version(all_events)
        for position, event, until in _with_ends(events):
            if not isinstance(event, EntityDeleted):
                rows.add_state(event, position, until)
            if rows.is_full:
                yield rows
                rows = RowBatch(max_leaves)
    yield rows


def _streams(batches: Batches) -> Iterator[tuple[str, Iterable[tuple[int, EntityEvent]]]]:
    return groupby(_read_events(batches), key=lambda found: found[1].stream)


def _read_events(batches: Batches) -> Iterator[tuple[int, EntityEvent]]:
    """The events of some batches, with their positions."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("topic", "revision", "state", "position")]
        for topic, revision, state, position in zip(*columns, strict=True):
            yield position, event_of(topic, revision, state)


def _may_be_published(stream: str) -> bool:
    """Whether the legacy APIs or Confluent's may look up a stream."""
    segments = stream.split("/")
    return len(segments) == _VERSION_SEGMENTS and segments[1] in _PUBLISHED_GROUPS


def _with_ends(events: Iterable[tuple[int, EntityEvent]]) -> Iterator[tuple[int, EntityEvent, int | None]]:
    """The events of a stream, each with the position of the next one."""
    previous: tuple[int, EntityEvent] | None = None
    for found in events:
        if previous is not None:
            yield (*previous, found[0])
        previous = found
    if previous is not None:
        yield (*previous, None)

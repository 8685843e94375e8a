"""The rows of `published` and `schema_version`, what the legacy APIs and Confluent's show, from the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import groupby
from operator import or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as f

from annals.domain.compat.legacy_apis import FACADE, LEGACY_APIS
from annals.domain.compat.publications import fold_publications
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.confluent.schema_versions import fold_schema_versions
from annals.domain.confluent.subjects import GROUPS
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.projections.entities.rows import PUBLICATION_COLUMNS, publication_row
from annals.projections.entities.schema_versions import SCHEMA_VERSION_COLUMNS, schema_version_row
from annals.projections.log.table_rows import event_of
from annals.spark_projections.arrow_batches import Batches, record_batch, spark_columns
from annals.spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TEXT_COLUMNS: Final = ("tree_key", "xid", "id", "uri")
_SCHEMA: Final = pa.schema(
    [pa.field(name, pa.string() if name in _TEXT_COLUMNS else pa.int64()) for name in PUBLICATION_COLUMNS]
)
_NUMBER_COLUMNS: Final = ("since", "subject_hash", "number", "id", "replaced", "deleted", "gone")
_COLUMN_TYPES: Final = {**dict.fromkeys(_NUMBER_COLUMNS, pa.int64()), "document": pa.binary()}
_SCHEMA_VERSION_SCHEMA: Final = pa.schema(
    [pa.field(name, _COLUMN_TYPES.get(name, pa.string())) for name in SCHEMA_VERSION_COLUMNS]
)
#: Parts of a Version's stream id, split at `/`; the first is empty.
_VERSION_SEGMENTS: Final = 7


def published_rows(log: DataFrame) -> DataFrame:
    """Every row of `published` at the end of a log.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    Groups by stream only Versions that were deleted, or that have private data of the legacy APIs.
    """
    events = upcast_log(log).select("position", "stream", "revision", "topic", "state").where(_are_of_versions())
    touches_publications = (f.col("topic") == EntityDeleted.TOPIC) | f.col("state").contains(f'"{FACADE}":')
    complete_streams = events.join(
        events.where(touches_publications).select("stream").distinct(), "stream", "left_semi"
    )
    return (
        complete_streams.repartition("stream")
        .sortWithinPartitions("stream", "revision")
        .mapInArrow(_to_rows, spark_columns(_SCHEMA))
    )


def schema_version_rows(log: DataFrame) -> DataFrame:
    """Every row of `schema_version` at the end of a log.

    log: as `published_rows` needs it. Groups by stream only Versions that ever were versions of a subject.
    """
    events = upcast_log(log).select("position", "stream", "revision", "topic", "state").where(_are_of_versions())
    events = events.where(f.col("stream").startswith(f"/{GROUPS}/"))
    has_facts = f.col("state").contains(f'"{CONFLUENT}":')
    complete_streams = events.join(events.where(has_facts).select("stream").distinct(), "stream", "left_semi")
    return (
        complete_streams.repartition("stream")
        .sortWithinPartitions("stream", "revision")
        .mapInArrow(_to_schema_rows, spark_columns(_SCHEMA_VERSION_SCHEMA))
    )


def _are_of_versions() -> Column:
    prefix_conditions = (f.col("stream").startswith(f"/{family.groups}/") for family in LEGACY_APIS)
    return reduce(or_, prefix_conditions) & (f.size(f.split("stream", "/")) == _VERSION_SEGMENTS)


def _to_rows(batches: Batches) -> Batches:
    for _, events in groupby(_read_events(batches), key=lambda found: found[1].stream):
        if rows := [publication_row(publication) for publication in fold_publications(events)]:
            yield record_batch(rows, _SCHEMA)


def _to_schema_rows(batches: Batches) -> Batches:
    for _, events in groupby(_read_events(batches), key=lambda found: found[1].stream):
        if rows := [tuple(schema_version_row(version)) for version in fold_schema_versions(events)]:
            yield record_batch(rows, _SCHEMA_VERSION_SCHEMA)


def _read_events(batches: Batches) -> Iterator[tuple[int, EntityEvent]]:
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("topic", "revision", "state", "position")]
        for topic, revision, state, position in zip(*columns, strict=True):
            yield position, event_of(topic, revision, state)

"""The rows of `published` and `schema_version`, what the legacy APIs and Confluent's show, from the whole log."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
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
from annals.spark_projections.arrow_batches import Batches, record_batches, spark_columns
from annals.spark_projections.read_model.computed_rows import events_by_stream
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
_PUBLISHED_GROUPS: Final = frozenset(family.groups for family in LEGACY_APIS) | {GROUPS}
#: Parts of a Version's stream id, split at `/`; the first is empty.
_VERSION_SEGMENTS: Final = 7


def published_rows(log: DataFrame) -> DataFrame:
    """Every row of `published` at the end of a log.

    log: rows of `annals.projections.log.table_rows`, from the first position on without a gap, whole interactions.
    Groups by stream only Versions that were deleted, or that have private data of the legacy APIs.
    """
    events = log.where(_are_of_versions())
    touches_publications = (f.col("topic") == EntityDeleted.TOPIC) | f.col("state").contains(f'"{FACADE}":')
    changed_streams = upcast_log(events).where(touches_publications).select("stream").distinct()
    complete_streams = events_by_stream(events.join(changed_streams, "stream", "left_semi"))
    return complete_streams.mapInArrow(_to_rows, spark_columns(_SCHEMA))


def schema_version_rows(log: DataFrame) -> DataFrame:
    """Every row of `schema_version` at the end of a log.

    log: as `published_rows` needs it. Groups by stream only Versions that ever were versions of a subject.
    """
    events = log.where(_are_of_versions() & f.col("stream").startswith(f"/{GROUPS}/"))
    has_facts = f.col("state").contains(f'"{CONFLUENT}":')
    changed_streams = upcast_log(events).where(has_facts).select("stream").distinct()
    complete_streams = events_by_stream(events.join(changed_streams, "stream", "left_semi"))
    return complete_streams.mapInArrow(_to_schema_rows, spark_columns(_SCHEMA_VERSION_SCHEMA))


def is_published(stream: str) -> bool:
    """Whether a stream may have such rows."""
    segments = stream.split("/")
    return len(segments) == _VERSION_SEGMENTS and segments[1] in _PUBLISHED_GROUPS


def read_events(batches: Batches) -> Iterator[tuple[int, EntityEvent]]:
    """The events of some batches, with their positions."""
    for batch in batches:
        columns = [batch.column(name).to_pylist() for name in ("topic", "revision", "state", "position")]
        for topic, revision, state, position in zip(*columns, strict=True):
            yield position, event_of(topic, revision, state)


def _are_of_versions() -> Column:
    segments = f.split("stream", "/")
    return (f.size(segments) == _VERSION_SEGMENTS) & segments[1].isin(*_PUBLISHED_GROUPS)


def _to_rows(batches: Batches) -> Batches:
    rows = (publication_row(each) for events in _streams(batches) for each in fold_publications(events))
    return record_batches(rows, _SCHEMA)


def _to_schema_rows(batches: Batches) -> Batches:
    rows = (tuple(schema_version_row(each)) for events in _streams(batches) for each in fold_schema_versions(events))
    return record_batches(rows, _SCHEMA_VERSION_SCHEMA)


def _streams(batches: Batches) -> Iterator[Iterator[tuple[int, EntityEvent]]]:
    return (events for _, events in groupby(read_events(batches), key=lambda found: found[1].stream))

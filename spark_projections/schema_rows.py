"""The rows of `schema_version`, what Confluent's API looks up, computed from the whole log."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as f

from annals.domain.confluent.facts import CONFLUENT
from annals.domain.confluent.schema_versions import fold_schema_versions
from annals.domain.confluent.subjects import GROUPS
from annals.projections.entities.schema_versions import SCHEMA_VERSION_COLUMNS, schema_version_row
from annals.spark_projections.arrow_batches import Batches, record_batch, spark_columns
from annals.spark_projections.published_rows import VERSION_SEGMENTS, read_events
from annals.spark_projections.upcast_log import upcast_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBER_COLUMNS: Final = frozenset(("since", "number", "id", "replaced", "deleted", "gone"))
_SCHEMA: Final = pa.schema(
    [pa.field(name, pa.int64() if name in _NUMBER_COLUMNS else pa.string()) for name in SCHEMA_VERSION_COLUMNS]
)


def schema_rows(log: DataFrame) -> DataFrame:
    """Every row of `schema_version` at the end of a log.

    log: as `published_rows` needs it. Groups by stream only Versions that ever were versions of a subject.
    """
    events = upcast_log(log).select("position", "stream", "revision", "topic", "state")
    events = events.where(
        f.col("stream").startswith(f"/{GROUPS}/") & (f.size(f.split("stream", "/")) == VERSION_SEGMENTS)
    )
    has_facts = f.col("state").contains(f'"{CONFLUENT}":')
    complete_streams = events.join(events.where(has_facts).select("stream").distinct(), "stream", "left_semi")
    return (
        complete_streams.repartition("stream")
        .sortWithinPartitions("stream", "revision")
        .mapInArrow(_to_rows, spark_columns(_SCHEMA))
    )


def _to_rows(batches: Batches) -> Batches:
    for _, events in groupby(read_events(batches), key=lambda found: found[1].stream):
        if rows := [tuple(schema_version_row(version)) for version in fold_schema_versions(events)]:
            yield record_batch(rows, _SCHEMA)

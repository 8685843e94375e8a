"""A large log: Spark rebuilds one database from segments, and the other one from a topic.

`ANNALS_TEST_EVENTS=1000000` makes it a million events, as `.ci/run` does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from annals.commands.store.database import tables as logged
from annals.commands.store.hashes import Interaction, LogRow
from annals.commands.store.log import Store
from annals.projections.database import drivers
from annals.projections.entities.tables import tables
from annals.projections.kafka.log_topic import LogTopic
from annals.projections.kafka.records import GROUP_KEYS, PublishedRecord, WindowPart
from annals.projections.kafka.topic_position import TopicPosition
from annals.projections.kafka.windows import numbered_records
from annals.projections.log.table_rows import LogTableRow, interaction_of, log_row
from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import append_segments
from annals.spark_projections.read_model.rebuild import rebuild
from annals.spark_projections.sources import kafka, segments
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.generated_log import Log, interactions
from tests.spark_projections.test_equality import rebuild_by_spark, state
from tests.support.brokers import kafka as brokers
from tests.support.stores import schema_of

pytestmark = [pytest.mark.long, pytest.mark.uses("Kafka"), pytest.mark.timeout(1800)]

EVENTS = int(os.environ.get("ANNALS_TEST_EVENTS", "100000"))
#: The number of rows that are inserted together.
TOGETHER = 20_000

_PARTITIONS = "spark.sql.shuffle.partitions"
_RECORD = "key binary, value binary, headers array<struct<key: string, value: binary>>"
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_ARROW = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("headers", pa.list_(_HEADER))])


class Million(NamedTuple):
    """The log in two stores without a read model, in segments and on a topic."""

    log: Log
    sqlite: Store
    postgres: Store
    folder: str
    servers: str


@pytest.fixture(scope="module")
def million(
    spark: SparkSession, connectors: list[str], postgres_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Million]:
    require_connector(connectors, "kafka")
    home, log = tmp_path_factory.mktemp("million"), Log()
    with ExitStack() as stack:
        urls = f"sqlite:///{home / 'annals.db'}", stack.enter_context(schema_of(postgres_server))
        sqlite, postgres = (stack.enter_context(closing(Store(url))) for url in urls)
        fill((sqlite, postgres), interactions(log, EVENTS))
        append_segments(urls[0], open_folder(str(home / "segments")))
        broker = stack.enter_context(brokers.kafka())
        broker.make("annals.log", 3)
        publish(segments.read(spark, str(home / "segments")), broker.own(), "annals.log")
        yield Million(log, sqlite, postgres, str(home / "segments"), broker.own())


def test_a_million_events_from_segments_and_from_a_topic(spark: SparkSession, million: Million) -> None:
    # P-14: the rebuilds result in the log's own hash and counts, and in the same rows in both databases
    ways = (
        (segments.read(spark, million.folder), million.sqlite, None),
        (kafka.read_rows(spark, million.servers, "annals.log"), million.postgres, kafka.whole_interactions),
    )
    # The session of the tests has two partitions, which are too large for a small heap with a log like this.
    spark.conf.set(_PARTITIONS, 16)
    try:
        reports = [rebuild(log, partial(rebuild_by_spark, store), drop_incomplete=whole) for log, store, whole in ways]
    finally:
        spark.conf.set(_PARTITIONS, 2)
    assert {report.position for report in reports} == {million.log.end.last}
    assert million.log.end.last >= EVENTS
    living, past, *_, hash = rows = sums_of_tables(million.sqlite)
    assert sums_of_tables(million.postgres) == rows
    assert hash == million.log.end.state
    assert (living[0], past[0]) == (million.log.living, million.log.replaced)


def fill(stores: Sequence[Store], history: Iterable[tuple[Interaction, list[LogRow]]]) -> None:
    """Puts a log into empty stores, without the read model."""
    for store in stores:
        store.create()
        with store.writing() as tx:
            tables().create(tx.connection)
    ended, rows = list[Interaction](), list[LogRow]()

    def insert_rows() -> None:
        for store in stores:
            with store.writing() as tx:
                db = drivers.database_of(tx.connection)
                db.insert(logged.log, rows)
                db.insert(logged.interaction, ended)
        ended.clear()
        rows.clear()

    for interaction, some in history:
        ended.append(interaction)
        rows += some
        if len(rows) > TOGETHER:
            insert_rows()
    insert_rows()


def publish(log: DataFrame, servers: str, topic: str) -> None:
    """Puts the records that the publisher makes of a log on a topic."""
    target = {"kafka.bootstrap.servers": servers, "topic": topic, "includeHeaders": "true"}
    log.mapInArrow(_records, _RECORD).write.format("kafka").options(**target).save()


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = map(LogTableRow, *(batch.column(name).to_pylist() for name in LogTableRow._fields))
        found = [record for row in rows for record in _published(row)]
        headers = [[{"key": name, "value": value} for name, value in record.headers] for record in found]
        columns = [record.key for record in found], [record.value for record in found], headers
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def _published(row: LogTableRow) -> Iterator[PublishedRecord]:
    before = TopicPosition(row.position - 1, row.position - 1, "", (-1,), GROUP_KEYS)
    log: Any = None  # only documents would be read from it
    return numbered_records(LogTopic(), before, [WindowPart(interaction_of(row), [log_row(row)])], log)


_SUMS = (
    "SELECT count(*), sum(since), sum(epoch), sum(length(compressed_attributes)) FROM entity",
    "SELECT count(*), sum(since), sum(until), sum(length(compressed_attributes)) FROM entity_history",
    "SELECT count(*), sum(length(id_key)), sum(length(value)) FROM attribute",
    "SELECT count(*), sum(length(type)), sum(length(path)) FROM attribute_path",
)


def sums_of_tables(store: Store) -> tuple[Any, ...]:
    """Counts and sums of the tables of a read model, and the state hash."""
    with store.engine.connect() as connection:
        sums = [tuple(map(int, connection.exec_driver_sql(query).one())) for query in _SUMS]
        return (*sums, state(connection))

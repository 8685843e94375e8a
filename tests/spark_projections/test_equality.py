"""Spark computes the same from a log as the registry itself, over whole histories of requests.

A served registry on PostgreSQL carries out a history. Each way has to result in the same tables, the same hash and the
same events: updates by every request, a rebuild by one process, and a rebuild by Spark from each source.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection, select

from annals.commands.store import hashes
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.log import Store
from annals.commands.store.mapper import assemble_after_image
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.rebuild import PrecomputedRows, RebuildReport
from annals.projections.entities.rebuild import rebuild as rebuild_store
from annals.projections.entities.tables import tables
from annals.projections.segments.folder import open_folder
from annals.projections.segments.write import SegmentSize, append_segments
from annals.spark_projections.events import xregistry_events
from annals.spark_projections.read_model.load import precomputed_rows
from annals.spark_projections.read_model.rebuild import rebuild
from annals.spark_projections.sources import kafka, postgres, segments
from annals.spark_projections.verify_log import UnverifiedLog
from tests.spark_projections.conftest import require_connector
from tests.spark_projections.served_registry import ServedLog, served_log
from tests.support.brokers import kafka as brokers
from tests.support.histories import Step, as_request, histories
from tests.support.read_model import read_model_rows
from tests.support.serving import annals
from tests.support.stores import schema_of
from tests.support.subscribing import BODY

pytestmark = [pytest.mark.long, pytest.mark.uses("Kafka"), pytest.mark.timeout(1800)]

#: Several histories in a row, because one is short.
HISTORIES = st.lists(histories(documents=True, most=60), min_size=6, max_size=9).map(lambda some: [*chain(*some)])

Rows = list[tuple[Any, ...]]


class Model(NamedTuple):
    """All rows of a read model, by table. hash: the state hash, computed from the rows of live entities."""

    tables: dict[str, Rows]
    hash: bytes


@pytest.fixture(scope="module")
def broker(connectors: list[str]) -> Iterator[str]:
    """The address of a Kafka broker."""
    require_connector(connectors, "kafka")
    with brokers.kafka() as found:
        yield found.own()


@settings(
    max_examples=2, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(steps=HISTORIES, cut=st.integers(20, 200))
def test_one_log_one_registry(
    spark: SparkSession, connectors: list[str], broker: str, postgres_server: str, steps: list[Step], cut: int
) -> None:
    # P-14, EV-77, EV-79: the log alone determines the read model and the events that are published
    require_connector(connectors, "postgres")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        registry = stack.enter_context(served_log(stack.enter_context(schema_of(postgres_server)), folder))
        store = stack.enter_context(closing(Store(registry.database)))
        carry_out(registry, steps)
        live, events = model(store), feed(registry.url)
        assert live.hash == store.log_end().state
        clear_live_tables(store)
        assert (rebuild_store(store).position, model(store)) == (store.log_end().position, live)
        for name, log in sources(spark, registry, broker, folder, cut).items():
            clear_live_tables(store)
            if name == "annals":
                # A caller who may not read subscriptions cannot verify the log, although its rows are right.
                with pytest.raises(UnverifiedLog, match="events are missing"):
                    rebuild(log, partial(rebuild_by_spark, store))
                rebuild_by_spark(store, precomputed_rows(log, store.log_end().position, (folder / "staged").as_uri()))
            else:
                rebuild(log, partial(rebuild_by_spark, store))
            assert (name, model(store)) == (name, live)
            rows = xregistry_events(log).orderBy("position", "sequence").collect()
            assert (name, [row.event for row in rows]) == (name, events)


def carry_out(registry: ServedLog, steps: list[Step]) -> None:
    """Carries out a history after the values that are difficult for sources. Some steps may be refused, but not all."""
    registry.write("POST", "/subscriptions", BODY | {"types": ["io.xregistry.capabilities.updated"]})
    registry.write("PATCH", "/schemagroups/one", {"deprecated": {}})
    # The models of histories have other types, and are refused while entities of these types exist.
    for name in ("endpoints", "messagegroups", "schemagroups"):
        registry.write("DELETE", f"/{name}")
    before = len(registry.rows())
    with httpx.Client(timeout=30) as client:
        for step in steps:
            request = as_request(step)
            is_json = request.body is not None and not isinstance(request.body, bytes)
            body = {"json": request.body} if is_json else {"content": request.body}
            answer = client.request(request.method, registry.url + request.path, **body)
            assert answer.status_code < 500, answer.text
    assert len(registry.rows()) > before + 3


def sources(spark: SparkSession, registry: ServedLog, broker: str, folder: Path, cut: int) -> dict[str, DataFrame]:
    """The log from each source. cut: the number of events in a segment, and of positions for a task."""
    append_segments(registry.database, open_folder(str(folder / "segments")), SegmentSize(events=cut))
    prefix = f"p{folder.name}"
    options = ("--once", "--partitions", "3", "--prefix", prefix, "--database", registry.database)
    done = annals("publish", "--kafka", broker, *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {
        "segments": segments.read(spark, str(folder / "segments")),
        "postgres": postgres.read(spark, registry.database, partition=cut),
        "kafka": kafka.read(spark, broker, f"{prefix}.log"),
        "annals": spark.read.format("annals").option("partitionsize", cut).load(registry.url),
    }


def model(store: Store) -> Model:
    """The read model of a store, its rows sorted."""
    with store.writing() as transaction:
        EntityProjection().catch_up(transaction.connection)
    with store.engine.connect() as connection:
        return Model(read_model_rows(connection), state(connection))


def state(connection: Connection) -> bytes:
    """The state hash, computed from the rows of live entities."""
    own = tables().entity.c
    rows = connection.execute(select(own.xid, own.type, own.epoch, own.compressed_attributes, own.private))
    images = (
        assemble_after_image(xid, type, epoch, decompress_state(attributes), private.encode())
        for xid, type, epoch, attributes, private in rows
    )
    return hashes.update_state_hash(hashes.EMPTY_HASH, (), map(hashes.entity_hash, images))


def rebuild_by_spark(store: Store, computed: PrecomputedRows) -> RebuildReport:
    """A rebuild that has nothing to catch up with: Spark has to compute the rows of the whole log."""
    assert computed.position == store.log_end().position
    return rebuild_store(store, None, computed)


def clear_live_tables(store: Store) -> None:
    """Empties the live tables, so that no old row is taken for a rebuilt one."""
    with store.engine.begin() as connection:
        for each in tables():
            connection.execute(each.delete())


def feed(url: str) -> list[str]:
    """The lines of the live feed, from the beginning on."""
    answer = httpx.get(f"{url}/-/events", headers={"accept": "application/x-ndjson"}, timeout=60)
    return answer.raise_for_status().text.split("\n")[:-1]

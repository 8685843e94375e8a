"""Debezium's JDBC sink reads the topic of entities like the topics of Debezium's sources."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from annals.commands.store.log import Store
from annals.commands.store.mapper import EventMapper
from annals.domain.model.builtin import default_source
from annals.domain.registry.events import EntityDeleted
from annals.projections.database import drivers
from annals.projections.entities.rows import EntityRow, entity_row
from annals.projections.kafka.entity_topic import ENTITIES
from annals.projections.log.reader import Log
from tests.api.compat.test_feeds import fill_registry
from tests.projections.kafka.publishing_rig import Rig
from tests.support.brokers.connect import jdbc_sink
from tests.support.brokers.kafka import Kafka
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving

pytestmark = [pytest.mark.long, pytest.mark.uses("Kafka", "Java"), pytest.mark.timeout(600)]

_SINK = {
    "insert.mode": "upsert",
    "delete.enabled": "true",
    "primary.key.mode": "record_key",
    "schema.evolution": "basic",
    "collection.name.format": "sunk_${source.table}",
}
_COLUMNS = ("xid", "type", "parent", "id", "epoch", "createdat", "modifiedat", "attributes", "document", "since")


def sunk_rows(url: str) -> dict[str, tuple[Any, ...]]:
    """The rows that the sink wrote, by xid; empty while the table does not exist."""
    with psycopg.connect(url) as connection:
        try:
            found = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM sunk_entities").fetchall()
        except psycopg.errors.UndefinedTable:
            return {}
    return {row[0]: row for row in found}


def live_rows(store: Store) -> dict[str, tuple[Any, ...]]:
    """The rows of the read model, from the log, with the values of a table."""
    rows: dict[str, EntityRow | None] = {}
    with store.engine.begin() as connection:
        for row in Log(drivers.database_of(connection)).events(1, 1 << 30):
            event = EventMapper().event_of_row(row)
            rows[row.stream] = None if isinstance(event, EntityDeleted) else entity_row(event, row.position)
    return {row.xid: tuple(_value(row, name) for name in _COLUMNS) for row in rows.values() if row is not None}


def _value(row: EntityRow, name: str) -> Any:
    match name:
        case "createdat" | "modifiedat":
            time = getattr(row.times, name)
            return datetime.fromisoformat(time) if time else None
        case "attributes":
            return json.loads(row.attributes)
    return getattr(row, name)


def test_the_table_that_the_sink_fills_is_the_read_model(postgres_url: str, broker: Kafka, tmp_path: Path) -> None:
    create(postgres_url, default_source())
    with serving(postgres_url) as api, closing(Store(postgres_url)) as store:
        fill_registry(api)
        change(api, "ü")
        rig = Rig(store, broker, topics=(ENTITIES,))
        rig.publish()
        with jdbc_sink(tmp_path, broker.own(), f"{rig.prefix}.{ENTITIES}", _SINK | database(postgres_url)) as log:
            try:
                until(lambda: sunk_rows(postgres_url) == live_rows(store), 200)
                api.done("DELETE", "/messagegroups/g")
                change(api, "later")
                rig.publish()
                until(lambda: sunk_rows(postgres_url) == live_rows(store), 100)
            except BaseException as error:
                error.add_note(log.read_text()[-3000:])
                raise
        assert len(live_rows(store)) == 5


def change(api: Api, name: str) -> None:
    """Three changes of two Groups, one of which is then deleted."""
    for group in ("kept", "dropped"):
        for number in range(3):
            api.done("PUT", f"/messagegroups/{group}", {"name": f"{name} {number}"})
    api.done("DELETE", "/messagegroups/dropped")


def database(url: str) -> dict[str, str]:
    """The settings of the sink for a database."""
    address, schema = make_url(url), url.rpartition("%3D")[2]
    return {
        "connection.url": f"jdbc:postgresql://{address.host}:{address.port}/{address.database}?currentSchema={schema}",
        "connection.username": str(address.username),
        "connection.password": "any",
    }

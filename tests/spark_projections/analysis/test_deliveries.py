"""The tables of deliveries for analysts: the status and the dead letters of a subscription, from the database."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from annals.commands.store.log import Store
from annals.projections.database.drivers import database_of
from annals.projections.subscriptions.state.tables import METADATA, deadletter
from annals.spark_projections.analysis import deliveries
from tests.spark_projections.conftest import require_connector
from tests.support.polling import until
from tests.support.registries.subscribed import registry
from tests.support.webhooks import webhooks

pytestmark = pytest.mark.timeout(300)


def parse_time(time: str | None) -> datetime | None:
    return None if time is None else datetime.fromisoformat(time)


def row(table: Any) -> dict[str, Any]:
    """The only row of a table, times in UTC."""
    (found,) = table.collect()
    return {
        name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in found.asDict().items()
    }


def test_the_tables_equal_the_status_of_the_registry(
    spark: SparkSession, connectors: list[str], postgres_url: str, tmp_path: Path
) -> None:
    # SUB-831, SUB-802: cursor, lag, attempts and dead letters by reference
    require_connector(connectors, "postgres")
    with closing(Store(postgres_url)) as store:
        store.create()
    spark.range(1).createOrReplaceTempView("deliveries")
    deliveries.register(spark, postgres_url)
    assert not spark.catalog.tableExists("deliveries")
    with webhooks() as sink, registry(postgres_url, tmp_path) as client:
        sink.answer = lambda path, event: 400
        id = client.subscribe(f"{sink.url}/h", types=["io.xregistry.version.created"])
        client.write("g/s/1")
        until(lambda: client.status(id)["deadletters"] == 1 and client.status(id)["lag"] == 0)
        status, (letter,) = client.status(id), client.done("GET", f"/subscriptions/{id}/deadletters")
        deliveries.register(spark, postgres_url)
        found = row(spark.table("deliveries"))
        assert found == {
            "subscription": id,
            **{name: status[name] for name in ("position", "headposition", "lag", "pending", "deadletters", "state")},
            "retrying": False,
            **{name: parse_time(status.get(name)) for name in ("lastsuccess", "lastattempt", "nextattempt")},
            "lasterror": status["lasterror"]["code"],
            "lasterror_time": parse_time(status["lasterror"]["time"]),
        }
        assert row(spark.table("deadletters")) == {
            "subscription": id,
            **{name: letter[name] for name in ("position", "sequence", "reason", "code", "attempts")},
            **{name: parse_time(letter[name]) for name in ("firstattempt", "lastattempt")},
        }


def test_moments_are_rounded_as_the_server_does(spark: SparkSession, connectors: list[str], postgres_url: str) -> None:
    # SUB-831: a dead letter has the same times here and over HTTP, to the microsecond
    require_connector(connectors, "postgres")
    chance = Random(831)
    times = [1.79e9 + chance.random() * 1e7 for _ in range(2000)]
    rows = [(f"s{number}", 1, "x", "x", "", 1, time, time) for number, time in enumerate(times)]
    with closing(Store(postgres_url)) as store, store.engine.begin() as connection:
        METADATA.create_all(connection)
        database_of(connection).insert(deadletter, rows)
    found = {each.subscription: each.firstattempt for each in deliveries.deadletters(spark, postgres_url).collect()}
    assert {name: time.astimezone(UTC) for name, time in found.items()} == {
        f"s{number}": datetime.fromtimestamp(time, UTC) for number, time in enumerate(times)
    }

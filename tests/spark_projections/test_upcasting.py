"""Spark reads events of old topics as the registry does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from annals.commands.store.mapper import UPCASTS, State, Upcast
from annals.domain.values.json_text import dumps, loads_trusted
from annals.projections.log.table_rows import LogTableRow
from annals.spark_projections import analysis
from annals.spark_projections.analysis.entity_rows import live_events, rows_of_events
from annals.spark_projections.log_schema import LOG_SCHEMA
from tests.spark_projections.example_registry import send_requests
from tests.spark_projections.served_registry import log_rows


def upcasts() -> dict[str, Upcast]:
    """Upcasts for an imaginary program: its `Entity` has an object `image`, its `Gone` only a reason in capitals."""

    # Nested functions, so that Spark sends their code to its workers, which can import only the real program.
    def entity(content: State) -> State:
        image: State = content.pop("image")
        return image | content

    def gone(content: State) -> State:
        return content | {"attributes": {}, "private": {}, "changed": [], "reason": content["reason"].lower()}

    return {
        "Entity:1": ("Entity:2", entity),
        "Entity:2": ("EntityUpdated:1", dict),
        "Gone:1": ("EntityDeleted:1", gone),
    }


def older(row: LogTableRow) -> LogTableRow:
    """The row as that program would have stored it, if it is one of the rows to change."""
    state: Any = loads_trusted(row.state)
    if row.topic == "EntityUpdated:1" and row.position % 2:
        image = {name: state.pop(name) for name in ("xid", "type", "epoch", "attributes", "private")}
        return row._replace(topic="Entity:1", state=dumps(state | {"image": image}).decode())
    if row.topic == "EntityDeleted:1":
        members = {name: state[name] for name in ("xid", "type", "epoch", "xregcorrelationid", "time")}
        return row._replace(topic="Gone:1", state=dumps(members | {"reason": state["reason"].upper()}).decode())
    return row


@pytest.fixture(scope="module")
def varied_log(tmp_path_factory: pytest.TempPathFactory) -> list[LogTableRow]:
    """A log with events of all kinds."""
    database = f"sqlite:///{tmp_path_factory.mktemp('story') / 'annals.db'}"
    asyncio.run(send_requests(database))
    return log_rows(database)


# The log has no events of the Message Catalog, whose table is computed like that of the Schema Registry.
@pytest.mark.parametrize("name", sorted({*analysis.TABLES, "rows"} - {"messagecatalog_events"}))
def test_an_old_event_reads_as_it_would_be_written_today(
    spark: SparkSession, varied_log: list[LogTableRow], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # P-14: stored bytes never change, only the code that reads them
    for topic, upcast in upcasts().items():
        monkeypatch.setitem(UPCASTS, topic, upcast)
    before = [older(row) for row in varied_log]
    assert {row.topic for row in before} > {"Entity:1", "Gone:1", "EntityUpdated:1"}
    table = (lambda log: rows_of_events(live_events(log))) if name == "rows" else analysis.TABLES[name]
    now, then = (
        sorted_rows(table(spark.createDataFrame([tuple(row) for row in log], LOG_SCHEMA)))
        for log in (varied_log, before)
    )
    assert now
    assert then == now


def sorted_rows(table: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, table.collect()), key=str)

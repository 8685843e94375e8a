"""The read model computed by Spark: the same rows as by the inline projection, proved by the same hash."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from annals.commands.store.log import Store
from annals.projections.database import drivers
from annals.projections.entities.rebuild import RebuildDiverged, rebuild
from annals.projections.entities.tables import tables
from annals.projections.log.reader import Log
from annals.projections.log.table_rows import table_rows
from annals.spark_projections.log_schema import LOG_SCHEMA
from annals.spark_projections.read_model import load_sqlite
from annals.spark_projections.read_model.load import precomputed_rows
from annals.spark_projections.read_model.rebuild import rebuild as rebuild_from
from annals.spark_projections.read_model.stream_rows import events_in_tree_order
from tests.projections.entities.test_rebuild import INTERACTIONS, record
from tests.support.registries.recorded import Registry


def log_of(spark: SparkSession, store: Store) -> DataFrame:
    """The log as rows in memory."""
    with store.engine.connect() as connection:
        log = Log(drivers.database_of(connection))
        whole = log.interactions(0, 1_000_000)
        rows = [tuple(row) for each in whole for row in table_rows(each, log.events(each.first, each.last))]
    return spark.createDataFrame(rows, LOG_SCHEMA)


@pytest.fixture
def filled(store_url: str) -> Any:
    """Entities that are changed, deleted and created again, and a stream that changes with each of them."""
    with Registry(store_url) as registry:
        registry.record(("/", {"registryid": "r"}), ("/model", {"model": {}}), ("/subscriptions/s", {"id": "s"}))
        for n in range(30):
            attributes = {"dirid": f"d{n}", "n": n, "big": 12345678901234567890.5, "labels": {"a.b": "é\x00"}}
            registry.record(("/", {"registryid": "r", "dirscount": n}), (f"/dirs/d{n}", attributes))
        registry.record(("/dirs/d3", None), ("/dirs/d4", {"dirid": "d4"}))
        registry.record(("/dirs/D3", {"dirid": "D3"}), ("/dirs/d5", None))
        yield registry


# P-14: the tables that Spark rebuilds equal the old ones, also those of the past and of the index
def test_a_rebuild_by_spark(spark: SparkSession, filled: Registry, tmp_path: Path) -> None:
    before, end = filled.tables(), filled.store.log_end().position
    log = log_of(spark, filled.store)
    # The rebuild catches up with events that Spark has not read.
    filled.record(("/dirs/d9", None), ("/", {"registryid": "r", "late": True}))
    late = filled.tables()
    assert late != before
    report = rebuild(filled.store, None, precomputed_rows(log, end, (tmp_path / "staged").as_uri()))
    assert filled.tables() == late
    assert report.position == filled.store.log_end().position


def test_a_sqlite_file_is_written_in_the_order_of_its_keys(
    spark: SparkSession, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # P-14: also with the rows of several tasks
    inserted: dict[str, list[Any]] = {}
    monkeypatch.setattr(
        load_sqlite, "load_batch", lambda engine, table, rows: inserted.setdefault(table.name, []).extend(rows)
    )
    with Registry(sqlite_url) as registry:
        for n in range(40):
            registry.record((f"/dirs/d{n * 7 % 40}", {"dirid": f"d{n}", "name": f"n{n}", "labels": {"a": f"{n}"}}))
        arguments = (log_of(spark, registry.store), 100_000, registry.store.engine, tables(), 100)
        load_sqlite.insert(*arguments, (tmp_path / "staged").as_uri(), lambda count: None)
    assert len(list((tmp_path / "staged" / "rows").glob("*.parquet"))) == 2
    for name, count in (("entity", 40), ("attribute", 3 * 40)):
        assert len(inserted[name]) == count
        assert inserted[name] == sorted(inserted[name])


def test_more_leaves_than_are_sorted_together(
    spark: SparkSession, sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # P-14: no leaf is lost between two ranges
    monkeypatch.setattr(load_sqlite, "_SORTED_LEAVES", 1)
    with Registry(sqlite_url) as registry:
        for n in range(40):
            registry.record((f"/dirs/d{n}", {"dirid": f"d{n}", "name": f"n{n}", "labels": {f"l{n % 3}": "x"}}))
        before, end = registry.tables(), registry.store.log_end().position
        # As if there were more events, so that several tasks write leaves of the same paths.
        rows = precomputed_rows(log_of(spark, registry.store), end, (tmp_path / "staged").as_uri())
        monkeypatch.setattr(load_sqlite, "events_in_tree_order", lambda log, _: events_in_tree_order(log, 100_000))
        rebuild(registry.store, None, rows)
        assert registry.tables() == before
    assert len(list((tmp_path / "staged" / "rows").glob("*.parquet"))) == 2


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(interactions=INTERACTIONS.filter(bool), data=st.data())
@pytest.mark.long
def test_any_history(spark: SparkSession, interactions: list[dict[str, dict[str, Any] | None]], data: Any) -> None:
    # P-14: with rows that Spark has computed up to any position, over any history
    with tempfile.TemporaryDirectory() as directory, Registry(f"sqlite:///{directory}/annals.db") as registry:
        ends = []
        for interaction in interactions:
            record(registry, interaction)
            ends.append(registry.store.log_end().position)
        before, position = registry.tables(), data.draw(st.sampled_from(ends))
        folder = (Path(directory) / "staged").as_uri()
        rebuild(registry.store, None, precomputed_rows(log_of(spark, registry.store), position, folder))
        assert registry.tables() == before


@pytest.mark.parametrize("fault", ["lost", "twice"])
def test_a_log_with_a_fault_in_the_past_is_refused(spark: SparkSession, filled: Registry, fault: str) -> None:
    # P-14: the rows of live entities would be right, but not those of past states
    before, log = filled.tables(), log_of(spark, filled.store)
    own = (log.stream == "/") & (log.revision == 3)
    with pytest.raises(RebuildDiverged, match=r"position \d+: events are missing or out of order"):
        rebuild_from(
            log.where(~own) if fault == "lost" else log.union(log.where(own)), partial(rebuild, filled.store, None)
        )
    assert filled.tables() == before


def test_rows_of_another_log_are_not_served(spark: SparkSession, filled: Registry, tmp_path: Path) -> None:
    before = filled.tables()
    log = log_of(spark, filled.store)
    lost = log.where(log.stream != "/dirs/d7")
    with pytest.raises(RebuildDiverged):
        rebuild(
            filled.store,
            None,
            precomputed_rows(lost, filled.store.log_end().position, (tmp_path / "staged").as_uri()),
        )
    assert filled.tables() == before

"""Rebuilds give the same tables from the log alone, during reads and writes and after a crash."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import inspect, update

from annals.commands.store.log import Store
from annals.projections.entities import rebuild as rebuilding
from annals.projections.entities.rebuild import RebuildDiverged, rebuild, rebuild_if_stale
from annals.projections.entities.rows import COMPRESSED_ATTRIBUTES
from annals.projections.entities.tables import tables
from tests.support.examples import examples
from tests.support.registries.recorded import Registry
from tests.support.stores import schema_of, server_of

OWN = {table.name for table in tables()}

XIDS = st.sampled_from(
    ("/", "/model", "/dirs/a", "/dirs/A", "/dirs/a/files/f", "/dirs/a/files/f/versions/1", "/dirs/a-b", "/dirs/b")
)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=3)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=2), SCALARS, max_size=2)
META = st.fixed_dictionaries({"createdat": st.just("2026-01-01T00:00:00Z")}, optional={"x": VALUES})
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={"name": VALUES, "labels": VALUES, "createdat": st.text(), "meta": META}
)
INTERACTIONS = st.lists(st.dictionaries(XIDS, st.none() | ATTRIBUTES, min_size=1, max_size=3), max_size=8)


def record(registry: Registry, interaction: dict[str, dict[str, Any] | None]) -> None:
    """Records what is possible: one event per stream, and deletions only of existing entities."""
    by_stream = {xid.lower(): (xid, attributes) for xid, attributes in interaction.items()}
    possible = [
        (registry.history.alive[stream].xid if stream in registry.history.alive else xid, attributes)
        for stream, (xid, attributes) in by_stream.items()
        if attributes is not None or stream in registry.history.alive
    ]
    if possible:
        registry.record(*possible)


# P-14: a read model that is rebuilt from the log is the same, byte for byte
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(INTERACTIONS)
def test_any_history_is_rebuilt_as_it_was(interactions: list[dict[str, dict[str, Any] | None]]) -> None:
    with tempfile.TemporaryDirectory() as directory, Registry(f"sqlite:///{directory}/annals.db") as registry:
        for interaction in interactions:
            record(registry, interaction)
        before = registry.tables()
        assert before == registry.expected()
        rebuild(registry.store)
        assert registry.tables() == before


@pytest.fixture
def filled(registry: Registry) -> Registry:
    """Some entities, changed and deleted ones among them."""
    registry.record(("/", {"registryid": "r"}), ("/model", {"model": {}}))
    for n in range(40):
        registry.record(("/", {"registryid": "r", "dirscount": n}), (f"/dirs/d{n}", {"dirid": f"d{n}", "n": n}))
    registry.record(("/dirs/d3", None), ("/dirs/d4", {"dirid": "d4", "labels": {"a.b": "c"}}))
    return registry


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches from a short log."""
    monkeypatch.setattr(rebuilding, "BATCH", 7)
    monkeypatch.setattr(rebuilding, "INDEX_BATCH", 3)


def left_overs(registry: Registry) -> set[str]:
    """Tables of the read model that are not the live ones."""
    names = inspect(registry.store.engine).get_table_names()
    return {name for name in names if name.startswith(tuple(OWN))} - OWN


# P-14
@pytest.mark.usefixtures("small_batches")
def test_twice_over(filled: Registry) -> None:
    before, seen = filled.tables(), list[tuple[int, int]]()
    for _ in range(2):
        report = rebuild(filled.store, lambda done, total: seen.append((done, total)))
        assert filled.tables() == before == filled.expected()
        assert (report.events, report.position) == (len(filled.history.recorded),) * 2
    assert seen[-1] == (report.position, report.position)
    assert not left_overs(filled)
    filled.record(("/dirs/d5", {"dirid": "d5", "n": "new"}), ("/dirs/d6", None))
    assert filled.tables() == filled.expected()
    assert filled.readers.quick_view().position() == filled.store.log_end().position


# On PostgreSQL, rows that were replaced during the rebuild and half-full pages take no space: VACUUM FULL cannot make
# the tables smaller.
def test_tables_are_packed(quiet_postgres_url: str) -> None:
    with Registry(quiet_postgres_url) as registry:
        for n in range(5):
            dirs = {f"{d * 31 % 101}-{d}": {"name": f"{n}{d * 31 % 101}", "n": n} for d in range(300)}
            registry.record(*((f"/dirs/{id}", {"dirid": id, **attributes}) for id, attributes in dirs.items()))
        rebuild(registry.store)
        after_rebuild = sizes(registry)
        with registry.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f"VACUUM FULL {', '.join(OWN)}")
        assert after_rebuild == sizes(registry)


def sizes(registry: Registry) -> dict[str, int]:
    """The bytes of each table of the read model with its indexes, without its map of free space."""
    bytes_of = "pg_relation_size('{0}') + pg_indexes_size('{0}')"
    with registry.store.engine.connect() as connection:
        return {name: connection.exec_driver_sql(f"SELECT {bytes_of.format(name)}").scalar_one() for name in OWN}


def test_an_empty_log(registry: Registry) -> None:
    assert rebuild(registry.store).events == 0
    registry.record(("/", {"registryid": "r"}))
    assert registry.tables() == registry.expected()


def test_rebuilds_at_the_same_time(filled: Registry) -> None:
    def rebuild_by_another(_: int) -> None:
        with closing(Store(filled.url)) as store:
            rebuild(store)

    with ThreadPoolExecutor() as pool:
        list(pool.map(rebuild_by_another, range(4)))
    assert filled.tables() == filled.expected()
    if filled.url.startswith("sqlite"):
        assert not Path(f"{filled.store.engine.url.database}-rebuild").exists()


def test_a_lost_or_damaged_read_model_comes_back(filled: Registry) -> None:
    with filled.store.writing() as tx:
        tx.connection.exec_driver_sql("DROP TABLE attribute")
        tx.connection.execute(update(tables().entity).values({COMPRESSED_ATTRIBUTES: b"{}"}))
    rebuild(filled.store)
    assert filled.tables() == filled.expected()


@pytest.mark.parametrize("table", ["entity", "entity_history"])
def test_a_read_model_of_another_schema_is_rebuilt(filled: Registry, table: str) -> None:
    with filled.store.writing() as tx:
        tx.connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN meta")
    with filled.store.writing() as tx:
        filled.entities.create(tx.connection)
    rebuild_if_stale(filled.store)
    assert filled.tables() == filled.expected()


# Writes at every stage of a rebuild, also after its last read of the log, are in the tables that it swaps in.
@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stage", ["create_tables", "fill_rows", "fill_index", "fill", "create_indexes", "verify"])
def test_writes_during_a_rebuild(filled: Registry, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    finish = getattr(rebuilding.Rebuild, stage)

    def then_write(self: rebuilding.Rebuild) -> None:
        finish(self)
        for n in range(5):
            filled.record(("/", {"registryid": stage, "n": n}), (f"/dirs/{stage}{n}", {"dirid": f"{stage}{n}"}))

    monkeypatch.setattr(rebuilding.Rebuild, stage, then_write)
    rebuild(filled.store)
    assert filled.tables() == filled.expected()


@pytest.mark.usefixtures("small_batches")
def test_reads_go_on_and_stay_whole(filled: Registry) -> None:
    done, wrong = Event(), list[int]()
    expected = len(filled.tables()[0]) - 2

    def read() -> None:
        while not done.is_set():
            with filled.readers.view() as view:
                found = sum(1 for _ in view.subtree("/"))
            if found != expected or not filled.readers.quick_view().entity("/dirs/d7"):
                wrong.append(found)

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(5):
        rebuild(filled.store)
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_a_snapshot_outlives_a_rebuild(filled: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "SWAP_PAUSE", 0.01)
    view = filled.readers.view()
    rows = view.__enter__().subtree("/")
    first = next(rows)
    thread = Thread(target=rebuild, args=(filled.store,))
    thread.start()
    thread.join(0.5)
    filled.record(("/dirs/late", {"dirid": "late"}))
    assert [first.xid, *(row.xid for row in rows)].count("/dirs/late") == 0
    view.__exit__(None, None, None)
    thread.join()
    assert filled.tables() == filled.expected()
    assert not left_overs(filled)


@pytest.fixture
def vacuumed(tmp_path: Path) -> Iterator[Registry]:
    """A registry on a server whose autovacuum runs every second."""
    with server_of(tmp_path, "autovacuum_naptime=1s") as url, schema_of(url) as schema, Registry(schema) as registry:
        yield registry


@pytest.mark.long
def test_a_vacuum_of_postgresql_gives_way(vacuumed: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    # the vacuum takes longer than the test, so a swap that waited for its end would fail
    monkeypatch.setattr(rebuilding, "SWAP_ATTEMPTS", 1)
    vacuumed.record(("/", {"registryid": "r"}), *((f"/dirs/d{n}", {"dirid": f"d{n}" * 50}) for n in range(2000)))
    with vacuumed.store.writing() as tx:
        slow = "insert_threshold = 1", "cost_delay = 100", "cost_limit = 1"
        settings = ", ".join(f"autovacuum_vacuum_{each}" for each in slow)
        tx.connection.exec_driver_sql(f"ALTER TABLE entity SET ({settings})")
    with vacuumed.store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        running = "SELECT 1 FROM pg_stat_progress_vacuum WHERE relid = 'entity'::regclass"
        while connection.exec_driver_sql(running).one_or_none() is None:
            time.sleep(0.1)
        rebuild(vacuumed.store)
    assert vacuumed.tables() == vacuumed.expected()


def test_a_manual_vacuum_delays_no_writer(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # the rebuild waits for the vacuum without holding the write lock
    monkeypatch.setattr(rebuilding, "SWAP_PAUSE", 0.01)
    monkeypatch.setattr(rebuilding, "VACUUM_LOCK_TIMEOUT", "60s")
    with Registry(postgres_url) as registry:
        registry.record(("/", {"registryid": "r"}))
        with registry.store.engine.begin() as vacuum, registry.store.engine.connect() as onlooker:
            vacuum.exec_driver_sql("LOCK TABLE entity IN SHARE UPDATE EXCLUSIVE MODE")
            thread = Thread(target=rebuild, args=(registry.store,), daemon=True)
            thread.start()
            waits = "SELECT 1 FROM pg_locks WHERE relation = 'entity'::regclass AND NOT granted"
            while onlooker.exec_driver_sql(waits).one_or_none() is None:
                time.sleep(0.01)
            began = time.monotonic()
            registry.record(("/dirs/d", {"dirid": "d"}))
            assert time.monotonic() - began < 30
        thread.join()
        assert registry.tables() == registry.expected()


# If the rebuilt rows do not have the state hash of the log, the log is damaged: the old rows stay in use.
def test_a_damaged_log_is_not_served(filled: Registry) -> None:
    before = filled.tables()
    with filled.store.writing() as tx:
        tx.connection.exec_driver_sql("DELETE FROM log WHERE stream = '/dirs/d7'")
    with pytest.raises(RebuildDiverged):
        rebuild(filled.store)
    assert filled.tables() == before


DIES = """
import os, signal, sys
from annals.commands.store.log import Store
from annals.projections.entities import rebuild as rebuilding

rebuilding.BATCH = 7
def die(self): os.kill(os.getpid(), signal.SIGKILL)
def die_late(self, connection, position):
    rename_tables(self, connection, position)
    die(self)
rename_tables = rebuilding.Rebuild._rename_tables
if sys.argv[2] == "fill":
    rebuilding.rebuild(Store(sys.argv[1]), lambda done, total: done > 20 and die(None))
elif sys.argv[2] == "swap":
    rebuilding.Rebuild._rename_tables = die_late
else:
    rebuilding.Rebuild.verify = die
rebuilding.rebuild(Store(sys.argv[1]))
"""


@pytest.mark.parametrize("stage", ["fill", "verify", "swap"])
def test_a_killed_rebuild_shows_nothing(filled: Registry, stage: str) -> None:
    before = filled.tables()
    died = subprocess.run([sys.executable, "-c", DIES, filled.url, stage], cwd=Path.cwd(), check=False)
    assert died.returncode == -signal.SIGKILL
    assert left_overs(filled)
    assert filled.tables() == before
    filled.record(("/dirs/after", {"dirid": "after"}))
    rebuild(filled.store)
    assert filled.tables() == filled.expected()
    assert not left_overs(filled)

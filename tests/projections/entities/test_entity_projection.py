"""The inline projection: its three tables agree with the log, on both databases."""

from __future__ import annotations

from decimal import Decimal

import pytest
from sqlalchemy import select

from annals.projections.database.drivers import MIN_COPY_ROWS
from annals.projections.entities.tables import tables
from tests.support.registries.recorded import Registry

FILE = {"fileid": "f1", "versionid": "1", "name": "One", "meta": {"epoch": 1, "createdat": "2026-01-01T00:00:00Z"}}


def test_rows_follow_creation_change_and_deletion(registry: Registry) -> None:
    registry.record(("/", {"registryid": "r"}), ("/model", {"model": {"groups": {}}}), ("/capabilities", {"a": ["b"]}))
    registry.record(("/", {"registryid": "r", "dirscount": 1}), ("/dirs/D1", {"dirid": "D1", "labels": {"a": "B"}}))
    registry.record(("/dirs/D1", {"dirid": "D1"}), ("/dirs/D1/files/f1", FILE))
    registry.record(("/dirs/D1/files/f1", {**FILE, "name": "Two"}), refresh=True)
    registry.record(("/dirs/D1/files/f1", None), ("/dirs/D1", None), ("/", {"registryid": "r"}))
    assert registry.tables() == registry.expected()


# ENT-31: an id that differs only in case from a deleted one continues the same stream
def test_recreation_in_another_case(registry: Registry) -> None:
    registry.record(("/dirs/d1", {"dirid": "d1", "name": "a"}))
    registry.record(("/dirs/d1", None))
    registry.record(("/dirs/D1", {"dirid": "D1"}))
    assert registry.tables() == registry.expected()
    assert [found[1] for found in registry.tables()[0]] == ["/dirs/D1"]


def test_history_intervals_meet(registry: Registry) -> None:
    for name in "abc":
        registry.record(("/dirs/d1", {"dirid": "d1", "name": name}))
    registry.record(("/dirs/d1", None))
    history = tables().history.c
    with registry.store.engine.connect() as connection:
        found = connection.execute(select(history.since, history.until).order_by(history.since)).all()
    assert [tuple(interval) for interval in found] == [(1, 2), (2, 3), (3, 4)]


def test_many_rows_at_once(registry: Registry) -> None:
    many = range(MIN_COPY_ROWS + 5)
    registry.record(*((f"/dirs/d{n}", {"dirid": f"d{n}", "n": n, "text": "tab\t\\N\x00\n"}) for n in many))
    registry.record(*((f"/dirs/d{n}", {"dirid": f"d{n}", "n": n + 1}) for n in many))
    assert registry.tables() == registry.expected()
    registry.record(*((f"/dirs/d{n}", None) for n in many))
    assert registry.tables() == registry.expected()
    assert not registry.tables()[0]


# ENT-4: a transaction that is rolled back leaves nothing in the read model
def test_moves_in_the_transaction_of_the_events(registry: Registry) -> None:
    registry.record(("/dirs/d1", {"dirid": "d1"}))
    before = registry.tables()
    with pytest.raises(ZeroDivisionError), registry.store.writing() as tx:
        registry.entities.apply(tx.connection, registry.history.record(("/dirs/d2", {"dirid": "d2"})))
        _ = 1 / 0
    assert registry.tables() == before


def test_only_changed_leaves_are_written(registry: Registry) -> None:
    registry.record(("/dirs/d1", {"dirid": "d1", "name": "a", "gone": 1}))
    with registry.store.writing() as tx:
        number = "SELECT number FROM attribute_path WHERE path = 'dirid'"
        tx.connection.exec_driver_sql(f"UPDATE attribute SET value = substr(value, 1, 0) WHERE path = ({number})")
    registry.record(("/dirs/d1", {"dirid": "d1", "name": "b"}))
    assert {(path, value) for _, path, value, _ in registry.tables()[2]} == {("dirid", b""), ("name", b"\3b")}


def test_numbers_beyond_doubles(registry: Registry) -> None:
    registry.record(("/dirs/d1", {"dirid": "d1", "n": Decimal(10**30), "big": Decimal("1e400")}))
    registry.record(("/dirs/d1", {"dirid": "d1", "n": Decimal(10**30 + 1)}))
    assert registry.tables() == registry.expected()

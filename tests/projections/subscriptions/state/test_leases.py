"""Leases of two kinds in one store: of deliveries and of replication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from annals.commands.store.log import Store
from annals.projections.database import drivers, state_database
from annals.projections.database.state_database import StateDatabase
from annals.projections.replication import tables as replication
from annals.projections.subscriptions.state import tables
from annals.projections.subscriptions.state.leases import Leases
from annals.projections.subscriptions.state.tables import LeaseTables

DELIVERIES, REPLICATION = tables.LEASES, replication.LEASES
WANTED = ("a", "b", "c", "d", "e", "f", "g", "h")


@pytest.fixture
def url(store_url: str) -> Iterator[str]:
    made = Store(store_url)
    made.create()
    made.close()
    state_database.create_tables(store_url, tables.METADATA)
    state_database.create_tables(store_url, replication.METADATA)
    yield store_url


def renew(leases: Leases, wanted: tuple[str, ...] = WANTED) -> set[str]:
    found = leases.renew(wanted)
    assert found is not None
    return set(found.ids)


def rows(url: str, pair: LeaseTables) -> tuple[int, list[str]]:
    """The number of processes in the tables of one kind, and the leased ids."""
    made = Store(url)
    try:
        with made.engine.connect() as connection:
            db = drivers.database_of(connection)
            count = db.one(f"SELECT count(*) FROM {pair.process}")[0]
            return count, sorted(row[0] for row in db.all(f"SELECT {pair.id} FROM {pair.lease}"))
    finally:
        made.close()


def test_kinds_do_not_see_each_other(url: str) -> None:
    """SUB-805: both kinds can lease the same ids; neither releases the leases of the other."""
    assert (DELIVERIES.id, REPLICATION.id) == ("subscription", "link")
    delivering, following = Leases(url, 60, DELIVERIES), Leases(url, 60, REPLICATION)
    assert renew(delivering) == renew(following) == set(WANTED)
    following.release(["a"])
    assert (rows(url, DELIVERIES), rows(url, REPLICATION)) == ((1, list(WANTED)), (1, list(WANTED[1:])))
    delivering.release_all()
    assert (rows(url, DELIVERIES), rows(url, REPLICATION)) == ((0, []), (1, list(WANTED[1:])))
    assert renew(following) == set(WANTED)
    following.release_all()


@pytest.mark.parametrize("pair", [DELIVERIES, REPLICATION], ids=["deliveries", "replication"])
def test_processes_of_a_kind_share(url: str, pair: LeaseTables) -> None:
    """SUB-805: no lease has two holders; a process that ends leaves its leases to the others."""
    first, second = Leases(url, 60, pair), Leases(url, 60, pair)
    assert renew(first) == set(WANTED)
    assert renew(second) == set()
    again = first.renew(WANTED)
    assert again is not None and again.surplus_ids
    first.release(again.surplus_ids)
    assert renew(second) == again.surplus_ids
    assert renew(first) == set(WANTED) - again.surplus_ids
    first.release_all()
    assert renew(second) == set(WANTED)
    second.release_all()


@pytest.mark.parametrize("pair", [DELIVERIES, REPLICATION], ids=["deliveries", "replication"])
def test_a_late_heartbeat_takes_nothing(url: str, pair: LeaseTables) -> None:
    """SUB-805: a process that has released all its leases stays away, so that others take them at once."""
    first, second = Leases(url, 60, pair), Leases(url, 60, pair)
    assert renew(first) == set(WANTED)
    first.release_all()
    assert first.renew(WANTED) is None
    assert rows(url, pair) == (0, [])
    assert renew(second) == set(WANTED)
    second.release_all()


def test_a_heartbeat_that_is_not_recorded_counts_no_released_lease(sqlite_url: str) -> None:
    """SUB-805: another process may have taken it before a long write began."""
    with closing(Store(sqlite_url)) as store:
        store.create()
    state_database.create_tables(sqlite_url, tables.METADATA)
    leases, other = Leases(sqlite_url, 60, DELIVERIES), StateDatabase(sqlite_url)
    recorded = leases.renew(["a", "b"])
    assert recorded is not None
    leases.release(["a"])
    with other.writing():
        unrecorded = leases.renew(["a", "b"])
    assert unrecorded == replace(recorded, ids=frozenset("b"), is_recorded=False)
    leases.release_all()
    other.close()

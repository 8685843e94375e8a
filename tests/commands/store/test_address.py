"""The URL that a store keeps where none is configured (EV-12)."""

from __future__ import annotations

from contextlib import closing

import pytest

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.log import Store
from annals.domain.decisions.commands import CreateRegistry
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.rebuild import rebuild

FIRST, SECOND = "http://127.0.0.1:9001", "http://127.0.0.1:9002"


def named(url: str, here: str, *, public_url: str = "") -> str:
    """The URL that a process at `here` records after it opened the store."""
    with closing(Store(url, public_url=public_url)) as store:
        store.create()
        store.ensure_public_url(here)
        return store.public_url


def record(url: str, here: str | None, registryid: str = "r") -> None:
    """Records one interaction, as a process at `here` if there is one."""
    with closing(Store(url)) as store:
        store.create()
        if here:
            store.ensure_public_url(here)
        with store.writing() as transaction:
            EntityProjection().create(transaction.connection)
        handle([PendingCommand(CreateRegistry(registryid, {}))], store, [EntityProjection()])


def test_the_first_address_stays(store_url: str) -> None:
    # EV-12: the source of all events stays the same when the registry's port changes
    assert [named(store_url, here) for here in (FIRST, SECOND, FIRST)] == [FIRST] * 3


def test_a_configured_url_comes_first_and_is_not_kept(store_url: str) -> None:
    assert named(store_url, FIRST, public_url="https://r.example") == "https://r.example"
    assert named(store_url, SECOND) == SECOND
    assert named(store_url, FIRST, public_url="https://r.example") == "https://r.example"
    assert named(store_url, FIRST) == SECOND


def test_interactions_are_recorded_under_it(store_url: str) -> None:
    record(store_url, FIRST)
    assert urls(store_url) == [FIRST]


@pytest.mark.parametrize("here", [FIRST, SECOND])
def test_a_store_whose_events_name_the_usual_address_goes_on_with_it(store_url: str, here: str) -> None:
    # EV-12: events without a URL have UNCONFIGURED_URL in their source, which never changes
    record(store_url, None)
    assert urls(store_url) == [""]
    assert named(store_url, here) == UNCONFIGURED_URL


def test_it_is_no_projection(store_url: str) -> None:
    record(store_url, FIRST)
    with closing(Store(store_url)) as store:
        rebuild(store)
    assert named(store_url, SECOND) == FIRST


def urls(url: str) -> list[str]:
    """The URLs that interactions were recorded with."""
    with closing(Store(url)) as store, store.engine.connect() as connection:
        return [row[0] for row in connection.exec_driver_sql("SELECT registry_url FROM interaction ORDER BY last")]

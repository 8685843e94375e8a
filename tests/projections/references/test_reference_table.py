"""The table of references: which entities have rows in it, and what `verify_history` finds there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from annals.commands.store.log import Store
from annals.domain.model.builtin import default_source
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.verify.verify_history import verify_history
from tests.support.registries.in_process import create, serving

GROUP = "/messagegroups/g"
BASE, DERIVED = f"{GROUP}/messages/base", f"{GROUP}/messages/derived"
KEY = DERIVED.replace("/", "!")
#: Changes that are not from the log.
CHANGES = {
    "a missing row": "DELETE FROM reference WHERE until IS NULL",
    "another end": "UPDATE reference SET until = 3 WHERE until IS NULL",
    "another target": "UPDATE reference SET target = '/dirs/x' WHERE until IS NULL",
    "a row too many": "INSERT INTO reference VALUES ('/dirs/d', '!dirs!e', 2, 3)",
}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A registry with current and past references."""
    create(store_url, default_source())
    with serving(store_url) as api:
        api.done("PUT", BASE, {"name": "/not/an xid", "description": "/messagegroups"})
        api.done("PUT", DERIVED, {"basemessageuri": BASE})
        api.done("PUT", DERIVED, {"basemessageuri": f"{BASE}/versions/1"})
    with closing(Store(store_url)) as store:
        yield store


def rows(store: Store) -> list[tuple[str, str, bool]]:
    """Each target, the key of the entity that refers to it, and whether the reference is current."""
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT target, tree_key, until FROM reference ORDER BY since, target")
        return [(target, key, until is None) for target, key, until in found]


def test_images_that_name_an_xid_have_rows(store: Store) -> None:
    # UI-77: the default Version has no row, because its Resource has the same attributes; nor have other texts
    base = BASE.replace("/", "!")
    expected = [("/not/an", base, True), (BASE, KEY, False), (f"{BASE}/versions/1", KEY, True)]
    assert rows(store) == expected
    assert list(verify_history(store)) == []
    rebuild(store)
    assert rows(store) == expected


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(store: Store, change: str) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql(CHANGES[change])
    [found] = verify_history(store)
    assert "reference" in found.text
    rebuild(store)
    assert list(verify_history(store)) == []

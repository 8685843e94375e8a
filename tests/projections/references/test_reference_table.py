"""The table of references: what has rows in it, and what the verification of a log finds there."""

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
#: Changes behind the log's back.
CHANGES = {
    "a missing row": "DELETE FROM reference WHERE until IS NULL",
    "another end": "UPDATE reference SET until = 3 WHERE until IS NULL",
    "another target": "UPDATE reference SET target = '/dirs/x' WHERE until IS NULL",
    "a row too many": "INSERT INTO reference VALUES ('/dirs/d', '!dirs!e', 2, 3)",
}


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A registry with references of now and of the past."""
    create(store_url, default_source())
    with serving(store_url) as api:
        api.done("PUT", BASE, {"name": "/not/an xid", "description": "/messagegroups"})
        api.done("PUT", DERIVED, {"basemessageuri": BASE})
        api.done("PUT", DERIVED, {"basemessageuri": f"{BASE}/versions/1"})
    with closing(Store(store_url)) as store:
        yield store


def rows(store: Store) -> list[tuple[str, str, bool]]:
    """Each target with the key of what names it, and whether it does so now."""
    with store.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT target, tree_key, until FROM reference ORDER BY since, target")
        return [(target, key, until is None) for target, key, until in found]


def test_images_that_name_an_xid_have_rows(store: Store) -> None:
    # UI-77: the default Version has none, because its Resource shows the same; other texts have none either
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

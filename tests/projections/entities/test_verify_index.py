"""`verify_index` finds every change of the attribute index that is not from the log, and names its entity."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.entities.verify.verify_index import verify_index
from tests.commands.test_dryrun import FILE, create, put

V = "/dirs/d/files/f/versions/1"


@pytest.fixture
def filled_store(store_url: str) -> Iterator[Store]:
    """A registry with an index of texts, numbers, lists and empty objects."""
    store = Store(store_url, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    store.create()
    create(store)
    entities = EntityProjection()
    handle([PendingCommand(put(FILE, name="é", labels={"a": "b", "c": "d"}))], store, [entities])
    assert list(verify_index(store)) == []  # also of an index that is behind
    with store.writing() as transaction:
        entities.catch_up(transaction.connection)
    assert list(verify_index(store)) == []
    yield store
    store.close()


PATH = "(SELECT number FROM attribute_path WHERE type = 'dirs.files.versions' AND path = '{}')"
KEY = "id_key = 'd!f\"1'"


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (
            f"UPDATE attribute SET value = substr(value, 1, 0) WHERE path = {PATH.format('labels.a')} AND {KEY}",
            "labels.a",
        ),
        (f"UPDATE attribute SET id_key = 'd!f\"2' WHERE path = {PATH.format('epoch')} AND {KEY}", "epoch"),
        (
            f"UPDATE attribute SET path = {PATH.format('name')} WHERE path = {PATH.format('labels.a')} AND {KEY}",
            "labels.a",
        ),
        ("UPDATE attribute_path SET path = 'labels.z' WHERE path = 'labels.a' AND type LIKE '%versions'", "labels.a"),
        (
            f"DELETE FROM attribute WHERE path IN ({PATH.format('labels.a')}, {PATH.format('labels.c')}) AND {KEY}",
            "labels.a, labels.c",
        ),
        (f"DELETE FROM attribute_path WHERE number = {PATH.format('name')}", "name"),
    ],
)
def test_a_changed_leaf_is_found(filled_store: Store, change: str, found: str) -> None:
    # FLAG-1, FLAG-82: filters on current entities read these rows, so each row has to agree with its entity
    key = V.replace("/", "!")
    with filled_store.engine.begin() as connection:
        connection.execute(text(change))
    reported = [each.text for each in verify_index(filled_store)]
    assert reported[0] == f"the index over attributes is not what {key!r} results in at {found}"
    assert list(verify_history(filled_store)) == []
    rebuild(filled_store)
    assert list(verify_index(filled_store)) == []


def test_an_orphaned_leaf_is_found(filled_store: Store) -> None:
    with filled_store.engine.begin() as connection:
        connection.execute(text("INSERT INTO attribute SELECT 1, substr(value, 1, 0), 'zzz' FROM attribute LIMIT 1"))
    [found] = verify_index(filled_store)
    assert found.position == filled_store.log_end().position
    assert found.text.startswith("the index over attributes has ")


def test_pages_join(filled_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annals.commands.store.database.sql.CHUNK", 1)
    assert list(verify_index(filled_store)) == []

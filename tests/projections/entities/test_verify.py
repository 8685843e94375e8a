"""`verify_history` finds every change of current or past rows that is not from the log, and its position."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Column, Table, select

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.domain.decisions.commands import DeleteEntities, ReplaceModel, Restore
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.rows import COMPRESSED_ATTRIBUTES, compress_attributes, decompress_attributes
from annals.projections.entities.tables import tables
from annals.projections.entities.verify.verify_history import verify_history
from tests.commands.test_dryrun import FILE, MODEL, create, put, run

#: A file is created, changed, deleted and restored. The history has all its states except the last.
WORK = (
    put(FILE, document=b"one", name="é"),
    put(FILE, name="two", labels={"a": "b"}),
    DeleteEntities("/dirs"),
    Restore("/", 8),
)
TABLES = (tables().entity, tables().history)
COLUMNS = [(table, column.name) for table in TABLES for column in table.columns]


@pytest.fixture
def filled_store(store_url: str) -> Iterator[Store]:
    """A registry with a history."""
    store = Store(store_url, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    store.create()
    create(store)
    handle([PendingCommand(command) for command in WORK], store, [EntityProjection()])
    assert list(verify_history(store)) == []
    yield store
    store.close()


def other_value(column: Column[object], value: Any) -> object:
    if column.name == COMPRESSED_ATTRIBUTES:
        return compress_attributes(decompress_attributes(value).replace(":", ": ", 1))
    return (value or 0) + 1 if "INT" in str(column.type) else f"{value}x"


def ids(value: object) -> str:
    return value.name if isinstance(value, Table) else str(value)


@pytest.mark.parametrize(("table", "name"), COLUMNS, ids=ids)
def test_a_changed_value_is_found(filled_store: Store, table: Table, name: str) -> None:
    # FLAG-82: reads of the past use these rows, so each value in them has to agree with the log
    column: Column[object] = table.c[name]
    with filled_store.engine.begin() as connection:
        last = connection.execute(select(table).order_by(table.c.since.desc()).limit(1)).one()
        old = last._mapping[name]
        key = (table.c.tree_key == last.tree_key) & (table.c.since == last.since)
        connection.execute(table.update().where(key).values({name: other_value(column, old)}))
    [found] = verify_history(filled_store)
    assert found.position == last.since or name == "since"


@pytest.mark.parametrize("table", TABLES, ids=ids)
def test_a_missing_row_is_found(filled_store: Store, table: Table) -> None:
    # FLAG-80: each entity has a row for the time that it existed
    with filled_store.engine.begin() as connection:
        connection.execute(table.delete().where(table.c.tree_key.like("%versions%")))
    assert [found.position for found in verify_history(filled_store)] == [filled_store.log_end().position]


def test_rebuilt_rows_are_equal(filled_store: Store) -> None:
    # FLAG-82: rows of the past still agree with the log after a rebuild
    rebuild(filled_store)
    assert list(verify_history(filled_store)) == []


def test_other_types_beside_schemas_are_no_publications(filled_store: Store) -> None:
    # LEG-707: the façades show Resources of their own type only, whatever else their Groups contain
    resources = {"schemas": {"singular": "schema"}, "files": {"singular": "file", "maxversions": 1}}
    model = {"groups": {**MODEL["groups"], "schemagroups": {"singular": "schemagroup", "resources": resources}}}
    versions = [put(f"/schemagroups/g/{plural}/x/versions/{n}", b"x") for plural in resources for n in (1, 2)]
    run(filled_store, ReplaceModel(model), *versions, DeleteEntities("/schemagroups/g/schemas"))
    assert list(verify_history(filled_store)) == []

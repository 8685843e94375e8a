"""Two stores with one log: the same chain hash and state hash, whatever databases they are in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.database import tables
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.decisions.commands import DeleteEntities, Restore, WriteMethod, WriteTree
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.rebuild import RebuildDiverged, rebuild
from tests.commands.test_dryrun import FILE, create, put

COPIED = (tables.log, tables.head, tables.interaction, tables.document)
WORK = (
    put(FILE, document=b"\x00\xff", name="é \U0001f600", ratio=1.50),
    WriteTree(FILE, {}, WriteMethod.POST, document=b"two"),
    DeleteEntities("/dirs"),
    Restore("/", 8),
    put("/dirs/e", labels={"a": "b"}),
)


@pytest.fixture
def pair(sqlite_url: str, postgres_url: str) -> list[Store]:
    """An empty store in each database; their clocks stand still, and their salts are equal."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    stores = [Store(url, clock=lambda: moment, new_salt=lambda: "salt") for url in (sqlite_url, postgres_url)]
    for store in stores:
        store.create()
    return stores


def test_the_same_work_gives_the_same_hashes(pair: list[Store]) -> None:
    # Proof: hashes depend on what was recorded, not on the database; a rebuild gives the same hashes on both
    for store in pair:
        create(store)
        handle([PendingCommand(command) for command in WORK], store, [EntityProjection()])
        assert [*verify_log(store), *verify_row_hashes(store)] == []
        rebuild(store)
        assert [*verify_row_hashes(store)] == []
    one, other = (store.log_end() for store in pair)
    assert one == other
    for store in pair:
        store.close()


@pytest.mark.parametrize("there", [0, 1])
def test_a_copied_log_is_the_same_log(pair: list[Store], there: int) -> None:
    # Proof: copied row by row into the other kind of database, the log verifies and gives the same read model
    source, target = pair[1 - there], pair[there]
    create(source)
    handle([PendingCommand(command) for command in WORK], source, [EntityProjection()])
    with source.engine.connect() as reading, target.engine.begin() as writing:
        for table in COPIED:
            writing.execute(table.insert(), [dict(row._mapping) for row in reading.execute(select(table))])
    rebuild(target)
    assert source.log_end() == target.log_end()
    assert [*verify_log(target), *verify_row_hashes(target)] == []
    for store in pair:
        store.close()


@pytest.mark.parametrize("damage", ["UPDATE interaction SET state = chain", "DELETE FROM log"])
def test_a_log_that_does_not_add_up_is_not_rebuilt_from(store: Store, damage: str) -> None:
    # Proof: the rebuilt rows must have the state hash of the log's end; otherwise the old read model stays
    create(store)
    handle([PendingCommand(command) for command in WORK], store, [EntityProjection()])
    with store.writing() as tx:
        before = tx.connection.exec_driver_sql("SELECT count(*) FROM entity").scalar()
        tx.connection.exec_driver_sql(damage)
    with pytest.raises(RebuildDiverged):
        rebuild(store)
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM entity").scalar() == before

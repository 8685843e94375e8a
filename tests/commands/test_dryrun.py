"""Dry runs return the events that a command would record and change nothing, whatever runs next to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import MetaData

from annals.commands.command_bus import CommandBus, handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.correlation_ids import adapt_new_id
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.decisions.commands import (
    Command,
    CreateRegistry,
    DeleteEntities,
    ReplaceModel,
    Restore,
    WriteMethod,
    WriteTree,
)
from annals.domain.errors.problems import Problem
from annals.projections.entities.apply import EntityProjection

FILES = {"singular": "file", "attributes": {"*": {"type": "any"}}}
MODEL: dict[str, Any] = {"groups": {"dirs": {"singular": "dir", "resources": {"files": FILES}}}}
FILE = "/dirs/d/files/f"


@pytest.fixture
def registry(store: Store) -> Store:
    """A registry with a file in it; its clock stands still, and its ids are numbered."""
    create(store)
    return store


def create(store: Store, salt: str = "salt") -> None:
    """Makes a registry of dirs with files and one file. salt: of all that is written."""
    with store.writing() as tx:
        EntityProjection().create(tx.connection)
    numbers = iter(range(1, 1_000_000))
    store.clock = lambda: datetime(2026, 1, 1, tzinfo=UTC)
    store.new_id = adapt_new_id(lambda: f"id{next(numbers)}")
    store.new_salt = lambda: salt
    run(store, CreateRegistry("reg", MODEL), put(FILE, document=b"first"))


def put(xid: str, document: bytes | None = None, **tree: Any) -> WriteTree:
    return WriteTree(xid, tree, WriteMethod.PUT, document)


def run(store: Store, *commands: Command, dryrun: Sequence[int] = ()) -> list[Any]:
    """The outcomes of commands that share a transaction. dryrun: which of them are only tried."""
    waiting = [PendingCommand(command, dryrun=number in dryrun) for number, command in enumerate(commands)]
    return list(handle(waiting, store, [EntityProjection()]))


def dump(store: Store) -> dict[str, list[Any]]:
    """Every row of every table."""
    tables = MetaData()
    tables.reflect(store.engine)
    with store.engine.connect() as connection:
        return {table.name: sorted(map(repr, connection.execute(table.select()))) for table in tables.sorted_tables}


def comparable(recorded: Recorded) -> list[Any]:
    """The events of a command, without their correlation id."""
    return [
        (position, type(event), event.model_dump(exclude={"xregcorrelationid"})) for position, event in recorded.events
    ]


TRIED: dict[str, Command] = {
    "a document": put(FILE, document=b"second"),
    "a new Group": put("/dirs/e", name="e"),
    "a deletion": DeleteEntities("/dirs"),
    "a model": ReplaceModel(
        {"groups": {"dirs": {"singular": "dir", "resources": {"files": FILES}}, "as": {"singular": "a"}}}
    ),
    "a restore": Restore("/", 3),
    "nothing at all": Restore("/", 7),
}


@pytest.mark.parametrize("command", TRIED.values(), ids=TRIED.keys())
def test_a_dry_run_returns_its_events_and_records_nothing(registry: Store, command: Command) -> None:
    # FLAG-83: log, heads, documents and read model are unchanged, and no correlation id is used up
    before = dump(registry)
    [tried] = run(registry, command, dryrun=[0])
    assert tried.xregcorrelationid is None
    assert dump(registry) == before
    [done] = run(registry, command)
    assert comparable(tried) == comparable(done)
    assert done.xregcorrelationid == ("id3" if done.events else None)


def test_a_dry_run_does_not_affect_other_commands(registry: Store) -> None:
    # FLAG-83, group commit: later commands get the same positions, version ids and model as without the dry run
    model = {"groups": {**MODEL["groups"], "boxes": {"singular": "box"}}}
    commands: list[Command] = [
        put("/dirs/a"),
        WriteTree(FILE, {}, WriteMethod.POST, document=b"tried"),
        WriteTree(FILE, {}, WriteMethod.POST, document=b"done"),
        ReplaceModel(model),
        put("/boxes/b"),
        DeleteEntities("/dirs/d"),
        put(FILE, name="still here"),
    ]
    outcomes = run(registry, *commands, dryrun=[1, 3, 5])
    assert [type(outcome).__name__ for outcome in outcomes] == [
        *("Recorded", "Recorded", "Recorded", "Recorded"),
        *("UnknownGroupType", "Recorded", "Recorded"),
    ]
    assert outcomes[1].processed == outcomes[2].processed == (f"{FILE}/versions/2",)
    assert [outcomes[number].xregcorrelationid for number in (0, 2, 6)] == ["id3", "id4", "id6"]
    assert [position for number in (0, 2, 6) for position, _ in outcomes[number].events] == [
        *range(8, registry.log_end().position + 1)
    ]
    assert [*verify_log(registry), *verify_row_hashes(registry)] == []


def test_a_refusal_is_the_same_either_way(registry: Store) -> None:
    # FLAG-83: all checks and errors of the real write
    before = dump(registry)
    for command in (put("/dirs/d", nope=1), put("/dirs/d", epoch=9), DeleteEntities("/dirs/x"), Restore("/dirs/d", 1)):
        tried, done = run(registry, command, command, dryrun=[0])
        assert isinstance(tried, Problem)
        assert (type(tried), str(tried), tried.subject) == (type(done), str(done), done.subject)
    assert dump(registry) == before


def test_concurrent_writes_and_dry_runs(registry: Store) -> None:
    # FLAG-83, EV-79: sixteen clients at once; no dry run is recorded, and each write is recorded once, without gaps
    command_bus, start = CommandBus(registry, [EntityProjection()]), Barrier(16)
    real: list[str] = []

    def client(number: int) -> None:
        start.wait()
        for turn in range(5):
            dryrun = (number + turn) % 2 == 0
            name = f"/dirs/{'tried' if dryrun else 'done'}{number}.{turn}"
            command_bus.submit(put(name), dryrun=dryrun).result()
            command_bus.submit(WriteTree(FILE, {}, WriteMethod.POST, document=name.encode()), dryrun=dryrun).result()
            real.extend([] if dryrun else [name])

    clients = [Thread(target=client, args=(number,)) for number in range(16)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    command_bus.close()
    assert [*verify_log(registry), *verify_row_hashes(registry)] == []
    events = registry.events(0, 10_000)
    assert [position for position, _ in events] == list(range(1, registry.log_end().position + 1))
    groups = [event.xid for _, event in events if event.type == "dirs" and event.xid != "/dirs/d"]
    assert sorted(groups) == sorted(real)
    versions = {event.xid.rpartition("/")[2] for _, event in events if event.type == "dirs.files.versions"}
    assert versions == {str(number) for number in range(1, 42)}

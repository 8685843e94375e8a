"""When the attribute index catches up; test_filters checks what reads return until then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

import pytest

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.command_bus import CommandBus, handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.domain.decisions.commands import DeleteEntities, WriteMethod, WriteTree
from annals.domain.decisions.world import Decision
from annals.projections.database.drivers import PostgresDatabase, SqliteDatabase
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.attribute_index import INDEX_NAME, MAX_BEHIND
from annals.projections.entities.verify.verify_index import verify_index
from tests.support.polling import until
from tests.support.registries.history import History
from tests.support.registries.in_process import create


def put(file: str, **attributes: Any) -> WriteTree:
    return WriteTree(f"/dirs/d1/files/{file}", attributes, WriteMethod.PUT)


def behind(store: Store) -> int:
    """By how many events the index is behind."""
    with store.engine.connect() as connection:
        query = f"SELECT position FROM projection WHERE name = '{INDEX_NAME}'"
        position = connection.exec_driver_sql(query).scalar_one()
    return store.log_end().position - int(position)


def test_it_catches_up_when_nothing_comes(store_url: str) -> None:
    create(store_url)
    with closing(Store(store_url)) as store:
        handle([PendingCommand(put("f1"))], store, [EntityProjection()])
        assert behind(store) > 0
        command_bus = CommandBus(store, [EntityProjection()])
        command_bus.submit(put("f2")).result()
        until(lambda: behind(store) == 0)
        command_bus.submit(put("f3")).result()
        command_bus.close()
        assert behind(store) == 0
        assert list(verify_index(store)) == []


def test_what_a_killed_process_has_left_is_taken_in_at_the_next_start(store_url: str) -> None:
    create(store_url)
    with closing(Store(store_url)) as store:
        handle([PendingCommand(put("f1"))], store, [EntityProjection()])
        assert behind(store) > 0
        open_registry(Settings(database=store_url)).close()
        assert behind(store) == 0
        assert list(verify_index(store)) == []


def test_it_catches_up_before_many_events_that_it_has_nothing_of(store_url: str) -> None:
    create(store_url)
    history, entities = History(), EntityProjection()
    subscriptions = [
        (f"/subscriptions/s{number}", {"subscriptionid": f"s{number}"}) for number in range(MAX_BEHIND + 1)
    ]
    with closing(Store(store_url)) as store:
        for changes in ([("/dirs/d1", {"dirid": "d1"})], subscriptions):
            events = tuple(event for _, event in history.record(*changes))
            with store.writing([entities]) as transaction:
                transaction.append(Decision(events, {}), transaction.context(), DeleteEntities("/dirs"))
        assert behind(store) == 0
        assert list(verify_index(store)) == []


def test_it_is_never_far_behind(store_url: str) -> None:
    create(store_url)
    entities = EntityProjection()
    with closing(Store(store_url)) as store:
        for number in range(MAX_BEHIND // 2):
            handle([PendingCommand(put(f"f{number}", name=f"n{number}"))], store, [entities])
            assert behind(store) <= MAX_BEHIND
        assert store.log_end().position > MAX_BEHIND
        assert list(verify_index(store)) == []


def test_a_large_command_that_is_undone_leaves_it_as_near(store_url: str) -> None:
    """A dry run writes many events into it, and takes them back."""
    create(store_url)
    entities = EntityProjection()
    tree: dict[str, Any] = {f"f{number}": {} for number in range(4 * MAX_BEHIND)}
    large = WriteTree("/dirs/d1/files", tree, WriteMethod.PATCH)
    with closing(Store(store_url)) as store:
        handle([PendingCommand(put("f1"))], store, [entities])
        dry_run = PendingCommand(large, dryrun=True, build_answer=lambda transaction, _: transaction.flush())
        handle([dry_run, PendingCommand(put("f2"))], store, [entities])
        for number in range(MAX_BEHIND):
            handle([PendingCommand(put("f1", name=str(number)))], store, [entities])
            assert behind(store) <= MAX_BEHIND
        assert list(verify_index(store)) == []


@pytest.mark.parametrize("change", [{"meta": {"xref": "/dirs/d1/files/f2"}}, {"meta": {"xref": None}}])
def test_an_xref_is_indexed_at_once(store_url: str, change: dict[str, Any]) -> None:
    """ENT-130: lists find Resources with an xref by the index."""
    create(store_url)
    entities = EntityProjection()
    with closing(Store(store_url)) as store:
        for file, attributes in (("f2", {}), ("f1", {"meta": {"xref": "/dirs/d1/files/f3"}}), ("f2", {"name": "n"})):
            handle([PendingCommand(put(file, **attributes))], store, [entities])
        assert behind(store) > 0
        handle([PendingCommand(put("f1", **change))], store, [entities])
        assert behind(store) == 0


def test_a_large_interaction_is_indexed_at_once(store_url: str) -> None:
    create(store_url)
    entities = EntityProjection()
    with closing(Store(store_url)) as store:
        handle([PendingCommand(put("f1", name="before"))], store, [entities])
        tree = {f"f{number}": {"name": str(number)} for number in range(MAX_BEHIND)}
        handle([PendingCommand(WriteTree("/dirs/d1/files", tree, WriteMethod.PATCH))], store, [entities])
        assert behind(store) == 0
        assert list(verify_index(store)) == []


@pytest.mark.parametrize("is_behind", [False, True])
def test_a_large_interaction_does_not_look_up_its_own_entities(
    store_url: str, monkeypatch: pytest.MonkeyPatch, is_behind: bool
) -> None:
    """Under the write lock, the index reads only the few entities that it lacks; those of an import are in memory."""
    create(store_url)
    entities = EntityProjection()
    with closing(Store(store_url)) as store:
        handle([PendingCommand(put("f1", name="before"))], store, [entities])
        if not is_behind:
            with store.writing() as transaction:
                entities.catch_up(transaction.connection)
        looked_up: list[str] = []
        for driver in (SqliteDatabase, PostgresDatabase):
            monkeypatch.setattr(driver, "list_parameter", staticmethod(_noting_keys(driver.list_parameter, looked_up)))
        tree = {f"g{number}": {"name": str(number)} for number in range(MAX_BEHIND)}
        handle([PendingCommand(WriteTree("/dirs/d1/files", tree, WriteMethod.PATCH))], store, [entities])
        assert behind(store) == 0
        assert ("!dirs!d1!files!f1" in looked_up) is is_behind
        assert [key for key in looked_up if "!files!g" in key] == []
        assert list(verify_index(store)) == []


def _noting_keys(list_parameter: Callable[..., Any], noted: list[str]) -> Callable[..., Any]:
    def noting(values: Iterable[str | int]) -> Any:
        keys = list(values)
        noted.extend(map(str, keys))
        return list_parameter(keys)

    return noting

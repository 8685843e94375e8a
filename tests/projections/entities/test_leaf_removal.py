"""Leaves of many deleted entities are removed together, with the same index as if they were removed one by one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from annals.projections.entities import leaf_removal
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.attribute_index import MAX_BEHIND
from annals.projections.entities.verify.verify_index import verify_index
from tests.support.registries.in_process import create

FILES = "/dirs/d2/files"
SINGLE: dict[str, Any] = {"f1": {}, "f5000": {"name": "new"}}


def files(prefix: str = "", count: int = MAX_BEHIND) -> dict[str, Any]:
    return {f"{prefix}f{number}": {"name": f"n{number}", "labels": {"a": str(number % 3)}} for number in range(count)}


def put(path: str, tree: dict[str, Any]) -> WriteTree:
    return WriteTree(path, tree, WriteMethod.PATCH)


def delete_listed(ids: Sequence[str]) -> DeleteEntities:
    return DeleteEntities(FILES, {id: {} for id in ids}, ignore=frozenset({"epoch"}))


@pytest.mark.parametrize(
    ("commands", "is_range"),
    [
        ([DeleteEntities("/dirs/d2")], True),
        ([DeleteEntities("/dirs")], True),
        ([DeleteEntities(FILES)], True),
        ([delete_listed(sorted(files())[:-1])], True),
        ([delete_listed([*files()][::2])], False),
        ([DeleteEntities("/dirs/d2"), put(FILES, SINGLE)], False),
        ([DeleteEntities(FILES), put(FILES, {"f5000": {"name": "new"}})], True),
        ([DeleteEntities(FILES), put(FILES, SINGLE), DeleteEntities(FILES)], False),
        ([put(FILES, files("a")), DeleteEntities("/dirs/d2")], True),
    ],
)
def test_the_index_is_the_same(
    store_url: str, commands: Sequence[Command], is_range: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(store_url)
    removed, remove_ranges = list[dict[str, Any]](), leaf_removal.remove_ranges

    def noted(*arguments: Any) -> Any:
        removed.append(dict(remove_ranges(*arguments)))
        return removed[-1]

    monkeypatch.setattr("annals.projections.entities.apply.remove_ranges", noted)
    with closing(Store(store_url)) as store:
        leaves = []
        for maximum in (leaf_removal.MAX_ENTITIES_PER_DELETED, 0):
            monkeypatch.setattr(leaf_removal, "MAX_ENTITIES_PER_DELETED", maximum)
            carry_out(store, [put("/dirs", {id: {"files": files()} for id in ("d1", "d2", "d3")})])
            removed.clear()
            carry_out(store, commands)
            assert any(removed) == (is_range and maximum > 0)
            leaves.append(index_of(store))
            assert list(verify_index(store)) == []
            carry_out(store, [DeleteEntities("/dirs")])
        assert leaves[0] == leaves[1]


def carry_out(store: Store, commands: Sequence[Command]) -> None:
    """Carries out commands in one transaction."""
    outcomes = handle([PendingCommand(command) for command in commands], store, [EntityProjection()])
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]


def index_of(store: Store) -> list[tuple[Any, ...]]:
    """All leaves, without the values of times and epochs."""
    query = "SELECT p.type, p.path, a.value, a.id_key FROM attribute a JOIN attribute_path p ON p.number = a.path"
    with store.engine.connect() as connection:
        return sorted(
            (type, path, b"" if path.endswith(("edat", "epoch")) else bytes(value), key)
            for type, path, value, key in connection.exec_driver_sql(query)
        )

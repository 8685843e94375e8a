"""The model in force, inside one transaction and across them."""

from __future__ import annotations

from typing import Any

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.decisions.commands import Command, CreateRegistry, ReplaceModel
from annals.domain.decisions.decide import decide
from tests.support.small_decider import Refused


def source(*plurals: str) -> dict[str, Any]:
    """A modelsource with these Group types."""
    return {"groups": {plural: {"plural": plural, "singular": plural[:-1]} for plural in plurals}}


def group_types(tx: WriteTransaction, recorded: Recorded) -> list[str]:
    return list(tx.world.model.groups)


def undone(tx: WriteTransaction, recorded: Recorded) -> None:
    assert group_types(tx, recorded) == ["nodes"]
    raise Refused


def run(store: Store, *requests: tuple[Command, Any]) -> list[Any]:
    outcomes = handle([PendingCommand(command, build_answer=answer) for command, answer in requests], store, [], decide)
    return [outcome.answer if isinstance(outcome, Recorded) else type(outcome) for outcome in outcomes]


def test_an_undone_model_is_not_remembered(store: Store) -> None:
    """TRAP-7: a command is decided by the recorded model, even if an undone one had the same position."""
    assert run(store, (CreateRegistry("r", source("dirs")), group_types)) == [["dirs"]]
    assert run(
        store,
        (ReplaceModel(source("nodes")), undone),
        (ReplaceModel(source("dirs", "trees")), group_types),
    ) == [Refused, ["dirs", "trees"]]
    with store.writing() as tx:
        assert list(tx.world.model.groups) == ["dirs", "trees"]


def test_a_model_is_compiled_once(store: Store) -> None:
    """Transactions share the compiled model until it changes: compiling costs more than most commands."""
    run(store, (CreateRegistry("r", source("dirs")), None))
    models = []
    for _ in range(2):
        with store.writing() as tx:
            models.append(tx.world.model)
    assert models[0] is models[1]

"""decide: from a command and the world it meets to the events that it comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from domain import capabilities, models
from domain import xid as xids
from domain.changes import ChangeSet
from domain.commands import (
    Command,
    ControlSubscription,
    CreateRegistry,
    DeleteEntities,
    DeleteSubscription,
    Method,
    ReplaceModel,
    Restore,
    WriteCapabilities,
    WriteSubscription,
    WriteTree,
)
from domain.deletions import delete_entities
from domain.model import compile_model
from domain.models import entities_comply
from domain.restoring import restore
from domain.rules.constraints import constraints_hold
from domain.rules.findings import domain_rules_hold
from domain.rules.formats import formats_hold
from domain.rules.matching import versions_match
from domain.rules.versions import resources_settle
from domain.subscriptions import deciding
from domain.trees import write_tree
from domain.world import Context, Decision, World

#: What has to hold once everything in a request is written, in this order; one of them counts what it lets pass.
RULES: Final[tuple[Callable[[ChangeSet], int | None], ...]] = (
    entities_comply,
    resources_settle,
    formats_hold,
    constraints_hold,
    versions_match,
    domain_rules_hold,
)


def decide(command: Command, world: World, context: Context) -> Decision:
    """The events of a command, or the Problem that refuses it; the world stays as it is.

    Raises: Problem.
    """
    if isinstance(command, WriteSubscription | DeleteSubscription | ControlSubscription):
        return deciding.decide(command, world, context)
    changes = ChangeSet(world, context)
    match command:
        case WriteTree():
            write_tree(changes, command)
        case DeleteEntities():
            delete_entities(changes, command)
        case ReplaceModel(source=source):
            models.replace(changes, source)
        case WriteCapabilities(capabilities=value, method=method):
            capabilities.write(changes, value, patch=method is Method.PATCH)
        case Restore():
            restore(changes, command)
        case CreateRegistry():
            _create(changes, command)
        case _:
            assert_never(command)
    findings = sum(rule(changes) or 0 for rule in RULES)
    return Decision(changes.events(), changes.documents, tuple(changes.processed), findings)


def _create(changes: ChangeSet, command: CreateRegistry) -> None:
    changes.model = compile_model(command.source)
    models.store(changes)
    capabilities.store(changes, capabilities.INITIAL)
    changes.registry().write({}, patch=False, kept={"registryid": command.registryid})
    changes.processed.append(xids.REGISTRY)

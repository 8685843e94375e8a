"""decide: from a command and the world it meets to the events that it comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from domain import capabilities, models
from domain import xid as xids
from domain.changes import ChangeSet
from domain.commands import (
    Command,
    ControlLink,
    ControlSubscription,
    CreateRegistry,
    DeleteEntities,
    DeleteLink,
    DeleteSubscription,
    Follow,
    RegistryCommand,
    Repair,
    ReplaceModel,
    Restore,
    WriteCapabilities,
    WriteLink,
    WriteMethod,
    WriteSubscription,
    WriteTree,
)
from domain.compat.agreeing import legacy_values_agree
from domain.compat.facade import LegacyDeletion, LegacyWrite
from domain.compat.imports import check_imports, imports_become_own
from domain.compat.numbers import versions_are_numbered
from domain.compat.publishing import apply_legacy_write
from domain.compat.refusals import to_legacy_problem
from domain.compat.retracting import apply_legacy_delete, retained_versions_go_with_their_owners
from domain.deletions import delete_entities
from domain.links import deciding as links
from domain.links.copies import check_copies
from domain.links.repairing import repair
from domain.model import compile_model
from domain.models import entities_comply_with_model
from domain.problems import Problem
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
    entities_comply_with_model,
    resources_settle,
    retained_versions_go_with_their_owners,
    versions_are_numbered,
    legacy_values_agree,
    imports_become_own,
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
        return deciding.decide_subscription(command, world, context)
    if isinstance(command, WriteLink | DeleteLink | ControlLink):
        return links.decide_link(command, world, context)
    if isinstance(command, Repair):
        return repair(command, world, context)
    assert not isinstance(command, Follow), "interactions of another log are no decisions of this registry"
    if not isinstance(command, WriteTree | DeleteEntities) or command.facade is None:
        return _decide(command, world, context)
    try:
        return _decide(command, world, context)
    except Problem as problem:
        raise to_legacy_problem(problem) from problem.__cause__


def _decide(command: RegistryCommand, world: World, context: Context) -> Decision:
    changes = ChangeSet(world, context)
    match command:
        case WriteTree(facade=LegacyWrite()):
            apply_legacy_write(changes, command)
        case WriteTree():
            write_tree(changes, command)
        case DeleteEntities(facade=LegacyDeletion()):
            apply_legacy_delete(changes, command)
        case DeleteEntities():
            delete_entities(changes, command)
        case ReplaceModel(source=source):
            models.replace_model(changes, source)
        case WriteCapabilities(capabilities=value, method=method):
            capabilities.write_capabilities(changes, value, patch=method is WriteMethod.PATCH)
        case Restore():
            restore(changes, command)
        case CreateRegistry():
            _create(changes, command)
        case _:
            assert_never(command)
    findings = sum(rule(changes) or 0 for rule in RULES)
    processed, number = tuple(changes.processed), changes.number
    decision = Decision(changes.events(), changes.documents, processed, findings, number=number)
    check_copies(decision.events, world, context)
    check_imports(decision.events, world, context)
    return decision


def _create(changes: ChangeSet, command: CreateRegistry) -> None:
    changes.model = compile_model(command.source)
    models.record_model(changes)
    capabilities.record_capabilities(changes, capabilities.INITIAL)
    changes.registry().write({}, patch=False, kept={"registryid": command.registryid})
    changes.processed.append(xids.REGISTRY)

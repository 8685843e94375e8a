"""decide: the events that result from a command and the current World."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, assert_never

from annals.domain.compat.errors import to_legacy_problem
from annals.domain.compat.request_extras import LegacyDeletion, LegacyWrite
from annals.domain.confluent.commands import (
    AssignSchemaIds,
    DeleteContext,
    DeleteSchemas,
    RegisterSchema,
    WriteSettings,
)
from annals.domain.confluent.import_commands import DeleteImportedVersions, ImportSubject
from annals.domain.decisions import capabilities, replace_model, subscriptions
from annals.domain.decisions.access.decide_grants import decide_grant
from annals.domain.decisions.access.decide_keys import decide_key
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.commands import (
    Command,
    ControlLink,
    ControlSubscription,
    CreateKey,
    CreateRegistry,
    DeleteEntities,
    DeleteGrant,
    DeleteLink,
    DeleteSubscription,
    RegistryCommand,
    Repair,
    ReplaceModel,
    Restore,
    RevokeKey,
    RotateKey,
    WriteCapabilities,
    WriteGrant,
    WriteLink,
    WriteMethod,
    WriteSubscription,
    WriteTree,
)
from annals.domain.decisions.compat.delete import apply_legacy_delete, forget_retained_versions
from annals.domain.decisions.compat.imports import check_imports, remove_importers
from annals.domain.decisions.compat.outdated_values import drop_outdated_values
from annals.domain.decisions.compat.version_numbers import number_versions
from annals.domain.decisions.compat.write import apply_legacy_write
from annals.domain.decisions.confluent.delete import delete_context, delete_schemas
from annals.domain.decisions.confluent.import_subject import delete_imported_versions, import_subject
from annals.domain.decisions.confluent.register import register_schema
from annals.domain.decisions.confluent.schema_ids import assign_schema_ids, load_schemas_without_ids
from annals.domain.decisions.confluent.subject_settings import (
    drop_replaced_levels,
    move_settings_to_groups,
    move_settings_to_new_resources,
)
from annals.domain.decisions.confluent.write_settings import write_settings
from annals.domain.decisions.delete import delete_entities
from annals.domain.decisions.replace_model import check_stored_entities
from annals.domain.decisions.replication import decide_links as links
from annals.domain.decisions.replication.copy_rights import check_copies, release_copies
from annals.domain.decisions.replication.repair import repair
from annals.domain.decisions.restore import restore
from annals.domain.decisions.rules.capabilities_in_use import check_versionmodes, recheck_formats
from annals.domain.decisions.rules.complete_resources import complete_resources
from annals.domain.decisions.rules.constraints import check_constraints
from annals.domain.decisions.rules.domain_rules import check_domain_rules
from annals.domain.decisions.rules.formats import check_documents
from annals.domain.decisions.rules.matchversions import check_matching_versions
from annals.domain.decisions.world import Context, Decision, World
from annals.domain.decisions.write import write_tree
from annals.domain.errors.problems import Problem
from annals.domain.model import compile_model
from annals.domain.values import xid as xids

#: Steps after everything in a request is written, in this order. One returns the number of findings that it lets pass.
RULES: Final[tuple[Callable[[ChangeSet], int | None], ...]] = (
    check_versionmodes,
    check_stored_entities,
    move_settings_to_new_resources,
    complete_resources,
    move_settings_to_groups,
    drop_replaced_levels,
    forget_retained_versions,
    number_versions,
    drop_outdated_values,
    remove_importers,
    recheck_formats,
    check_documents,
    assign_schema_ids,
    check_constraints,
    check_matching_versions,
    check_domain_rules,
    release_copies,
)


def decide(command: Command, world: World, context: Context) -> Decision:
    """The events of a command, without a change to the World.

    Raises: Problem, if the command is refused.
    """
    match command:
        case WriteSubscription() | DeleteSubscription() | ControlSubscription():
            return subscriptions.decide_subscription(command, world, context)
        case WriteLink() | DeleteLink() | ControlLink():
            return links.decide_link(command, world, context)
        case CreateKey() | RotateKey() | RevokeKey():
            return decide_key(command, world, context)
        case WriteGrant() | DeleteGrant():
            return decide_grant(command, world, context)
        case Repair():
            return repair(command, world, context)
        case WriteTree(facade=LegacyWrite()) | DeleteEntities(facade=LegacyDeletion()):
            return _decide_legacy_command(command, world, context)
        case _:
            return _decide_registry_command(command, world, context)


def _decide_legacy_command(command: RegistryCommand, world: World, context: Context) -> Decision:
    """The decision; a refusal has an error of the legacy APIs."""
    try:
        return _decide_registry_command(command, world, context)
    except Problem as problem:
        raise to_legacy_problem(problem) from problem.__cause__


def _decide_registry_command(command: RegistryCommand, world: World, context: Context) -> Decision:
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
            replace_model.replace_model(changes, source)
        case WriteCapabilities(capabilities=value, method=method):
            capabilities.write_capabilities(changes, value, patch=method is WriteMethod.PATCH)
        case Restore():
            restore(changes, command)
        case CreateRegistry():
            _create_registry(changes, command)
        case RegisterSchema():
            register_schema(changes, command)
        case DeleteSchemas():
            delete_schemas(changes, command)
        case WriteSettings():
            write_settings(changes, command)
        case DeleteContext():
            delete_context(changes, command)
        case ImportSubject():
            import_subject(changes, command)
        case DeleteImportedVersions():
            delete_imported_versions(changes, command)
        case AssignSchemaIds():
            load_schemas_without_ids(changes)
        case _:
            assert_never(command)
    findings = sum(rule(changes) or 0 for rule in RULES)
    decision = Decision(
        changes.events(),
        changes.documents,
        tuple(changes.processed),
        findings,
        number=changes.number,
        deleted_numbers=tuple(changes.deleted_numbers),
        version_chains=changes.version_chains,
    )
    if not isinstance(command, AssignSchemaIds):  # which changes nothing of a copy that its source knows
        check_copies(decision.events, world, context)
    check_imports(decision.events, world, context)
    return decision


def _create_registry(changes: ChangeSet, command: CreateRegistry) -> None:
    changes.model = compile_model(command.source)
    replace_model.record_model(changes)
    capabilities.record_capabilities(changes, capabilities.INITIAL)
    changes.registry().write({}, patch=False, fixed={"registryid": command.registryid})
    changes.processed.append(xids.REGISTRY)

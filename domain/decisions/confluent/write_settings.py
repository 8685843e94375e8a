"""Writes of configs and modes (CSR-702 to CSR-711)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from annals.domain.confluent.commands import SettingKind, WriteSettings
from annals.domain.confluent.errors import invalid_subject, is_referenced, not_permitted, subject_not_found
from annals.domain.confluent.facts import facts_of, with_facts
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import (
    IMPORT,
    READONLY_MODES,
    ScopeSettings,
    changed_config,
    effective_mode,
    parse_mode,
    settings_of_facts,
)
from annals.domain.confluent.subjects import GLOBAL_CONTEXT, GROUPS, RESOURCES, Subject, group_xid
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.confluent.delete import forget_subject
from annals.domain.decisions.confluent.subject_settings import set_subject_of_group, store_settings
from annals.domain.decisions.confluent.world_entities import entity_finder
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.values import xid as xids


def write_settings(changes: ChangeSet, command: WriteSettings) -> None:
    """Applies one WriteSettings to a change. Raises: SchemaRegistryError; any Problem of a write."""
    registry = SchemaRegistry(changes.world.schemas, entity_finder(changes.world), command.context_ids)
    scope = command.subject
    if scope.name and not scope.is_registrable:
        raise invalid_subject(scope.qualified)
    current = registry.settings(scope)
    if command.kind is SettingKind.CONFIG and effective_mode(scope, registry.settings) in READONLY_MODES:
        shown_scope = f"Context {scope.context}" if scope.is_context else f"Subject {scope.qualified}"
        raise not_permitted(f"{shown_scope} is in read-only mode")
    settings = _changed_settings(command, current)
    if command.kind is SettingKind.MODE and settings.mode == IMPORT and not command.force:
        is_emptied = _empty_scope(changes, registry, scope)
        settings = settings._replace(config={}) if is_emptied and scope.name else settings
    if settings != current:
        store_settings(changes, registry, command, settings)
    if command.kind is SettingKind.MODE and command.deletes and command.recursive and scope.is_context:
        _clear_modes(changes, registry, scope)


def _changed_settings(command: WriteSettings, current: ScopeSettings) -> ScopeSettings:
    if command.kind is SettingKind.CONFIG:
        if command.deletes and not current.config and command.subject.name:
            raise subject_not_found(command.subject.qualified)
        return current._replace(config={} if command.deletes else changed_config(current.config, command.values))
    if command.deletes and current.mode is None and command.subject.name:
        raise subject_not_found(command.subject.qualified)
    mode = None if command.deletes else parse_mode(command.values.get("mode"), command.subject)
    return current._replace(mode=mode)


def _empty_scope(changes: ChangeSet, registry: SchemaRegistry, scope: Subject) -> bool:
    """Deletes the soft-deleted versions in a scope for good, so that an import cannot contradict their ids (CSR-709).

    Returns whether there were any.

    Raises: SchemaRegistryError if a version is live, or if a schema that stays refers to one.
    """
    versions = _versions_in_scope(changes, registry, scope)
    if any(version.is_live for version in versions):
        raise not_permitted("Cannot import since found existing subjects")
    places = {(version.xid, version.since) for version in versions}
    for version in versions:
        if any((one.xid, one.since) not in places for one in registry.referrers(version)):
            raise is_referenced(registry.subject(version).qualified, version.number)
    for (group, name), members in groupby(versions, lambda version: (version.group, version.subject)):
        targets = list(members)
        forget_subject(changes, group_xid(group), name, targets, targets)
    return bool(versions)


def _versions_in_scope(changes: ChangeSet, registry: SchemaRegistry, scope: Subject) -> Sequence[SchemaVersion]:
    """The versions of a subject, a context or all contexts, by subject and number."""
    if scope.name:
        return registry.versions(scope).all
    group = registry.group(scope.context) if scope.context != GLOBAL_CONTEXT else None
    groups = [group] if group is not None else []
    if scope.context == GLOBAL_CONTEXT:
        groups = [entity.id for entity in changes.world.members(xids.join(GROUPS))]
    found = registry.index.listed(groups)
    return sorted(found, key=lambda version: (version.group, version.subject, version.number))


def _clear_modes(changes: ChangeSet, registry: SchemaRegistry, scope: Subject) -> None:
    """Clears the modes of all subjects in a context (CSR-708). Raises: Problem if one is read-only."""
    group_id = registry.group(scope.context)
    if group_id is None:
        return
    xid = xids.join(GROUPS, group_id)
    for entity in changes.world.members(xids.join(GROUPS, group_id, RESOURCES)):
        if facts_of(entity.private).get("mode") is not None:
            check_writable(changes, entity.xid, frozenset())
            resource = changes.resource(entity.xid)
            resource.confluent = with_facts(resource.confluent, mode=None)
            resource.meta.touch()
    subjects = facts_of(changes.existing_entity(xid).private).get("subjects", {})
    if any("mode" in members for members in subjects.values()):
        group = changes.group(xid)
        for name, members in subjects.items():
            set_subject_of_group(group, name, settings_of_facts(members)._replace(mode=None))
        group.touch()

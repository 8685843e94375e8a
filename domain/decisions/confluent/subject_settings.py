"""Settings of subjects while their Resources come and go, and writes of settings.

Rules CSR-605, CSR-702 to CSR-713, CSR-810.
"""

from __future__ import annotations

from typing import Any

from annals.domain.confluent.commands import SettingKind, WriteSettings
from annals.domain.confluent.errors import invalid_subject, not_permitted, subject_not_found
from annals.domain.confluent.facts import facts_of, subject_name, with_facts
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.settings import (
    IMPORT,
    LEVEL,
    NO_SETTINGS,
    NONE_LEVEL,
    READONLY_MODES,
    ScopeSettings,
    changed_config,
    effective_mode,
    is_of_registry,
    parse_mode,
    settings_of_facts,
    settings_of_resource,
)
from annals.domain.confluent.subjects import GLOBAL_CONTEXT, GROUPS, RESOURCES, Subject
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import GroupDraft, ResourceDraft
from annals.domain.decisions.confluent.contexts import record_context
from annals.domain.decisions.confluent.world_entities import entity_finder
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.decisions.write_resource import WriteOptions, write_meta
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.values import xid as xids


def write_settings(changes: ChangeSet, command: WriteSettings) -> None:
    """Applies one WriteSettings to a change. Raises: SchemaRegistryError; any Problem of a write."""
    registry = SchemaRegistry(changes.world.schemas, entity_finder(changes.world), command.context_ids)
    scope = command.subject
    if scope.name and not Subject(scope.context if scope.context != GLOBAL_CONTEXT else ".", scope.name).is_registrable:
        raise invalid_subject(scope.qualified)
    current = registry.settings(scope)
    if command.kind is SettingKind.CONFIG and effective_mode(scope, registry.settings) in READONLY_MODES:
        raise not_permitted(f"Subject {scope.qualified} is in read-only mode")
    settings = _changed_settings(command, current)
    if command.kind is SettingKind.MODE and settings.mode == IMPORT and not command.force:
        _check_import(registry, scope)
    if settings != current:
        store_settings(changes, registry, command, settings)
    if command.recursive and scope.is_context:
        _clear_modes(changes, registry, scope)


def take_over_settings(changes: ChangeSet, resource: ResourceDraft, name: str) -> None:
    """Moves the settings of a subject that gets its Resource from its Group to it."""
    group = changes.group(xids.join(*xids.segments(resource.xid)[:2]))
    subjects = group.confluent.get("subjects", {})
    if name in subjects:
        settings = settings_of_facts(subjects[name])
        _set_subject_of_group(group, name, NO_SETTINGS)
        set_resource_settings(changes, resource, settings)


def keep_settings(changes: ChangeSet) -> None:
    """Keeps the settings of subjects that lose their Resource, whichever API deletes it, in their Group."""
    for resource in changes.resources.values():
        stored = resource.entity
        if not resource.is_deleted or stored is None or not _is_schema(resource.xid):
            continue
        compatibility = stored.attributes["meta"].get("compatibility")
        settings = settings_of_resource(facts_of(stored.private), compatibility)
        group = changes.groups.get(xids.stream(xids.join(*xids.segments(resource.xid)[:2])))
        if group is not None and not group.is_deleted and not settings.is_empty:
            _set_subject_of_group(group, subject_name(resource.xid, facts_of(stored.private)), settings)


def drop_settings(changes: ChangeSet, group_xid: str, name: str) -> None:
    """Drops the settings of a subject without a Resource, whose last version is gone (CSR-605)."""
    entity = changes.find(group_xid)
    if entity is not None and name in facts_of(entity.private).get("subjects", {}):
        group = changes.group(group_xid)
        _set_subject_of_group(group, name, NO_SETTINGS)
        group.touch()


def _is_schema(xid: str) -> bool:
    segments = xids.segments(xid)
    return (segments[0], segments[2]) == (GROUPS, RESOURCES)


def _changed_settings(command: WriteSettings, current: ScopeSettings) -> ScopeSettings:
    if command.kind is SettingKind.CONFIG:
        if command.deletes and not current.config and command.subject.name:
            raise subject_not_found(command.subject.qualified)
        return current._replace(config={} if command.deletes else changed_config(current.config, command.values))
    if command.deletes and current.mode is None and command.subject.name and not command.recursive:
        raise subject_not_found(command.subject.qualified)
    mode = None if command.deletes else parse_mode(command.values.get("mode"), command.subject)
    return current._replace(mode=mode)


def _check_import(registry: SchemaRegistry, scope: Subject) -> None:
    """Raises: SchemaRegistryError if there are versions in the scope, whose ids an import could contradict."""
    group = registry.group(scope.context) if scope.context != GLOBAL_CONTEXT else None
    if scope.name:
        has_versions = any(version.is_live for version in registry.versions(scope))
    else:
        has_versions = group is not None and registry.index.has_versions(group)
    if has_versions:
        raise not_permitted("Cannot import since found existing subjects")


def store_settings(
    changes: ChangeSet, registry: SchemaRegistry, command: WriteSettings, settings: ScopeSettings
) -> None:
    """Replaces the settings of a scope. Raises: any Problem of a write."""
    scope = command.subject
    if is_of_registry(scope):
        draft = changes.registry()
        contexts = {**draft.confluent.get("contexts", {}), scope.context: settings.members()}
        contexts = {name: members for name, members in contexts.items() if members}
        draft.confluent = with_facts(draft.confluent, contexts=contexts or None)
        draft.touch()
        changes.processed.append(xids.REGISTRY)
        return
    group_id = xids.entity_id(command.xid)
    xid = registry.resource(group_id, scope.name) if scope.name else None
    if xid is not None:
        check_writable(changes, xid, frozenset())
        resource = changes.resource(xid)
        check_no_xref(resource)
        set_resource_settings(changes, resource, settings)
        changes.processed.append(xid)
        return
    group = _group(changes, command)
    if scope.name:
        _set_subject_of_group(group, scope.name, settings)
    else:
        members = settings.members()
        group.confluent = with_facts(group.confluent, config=members.get("config"), mode=members.get("mode"))
    group.touch()
    changes.processed.append(command.xid)


def _group(changes: ChangeSet, command: WriteSettings) -> GroupDraft:
    context = command.context_ids.context_of(xids.entity_id(command.xid))
    record_context(changes, command.xid, command.subject, context)
    return changes.group(command.xid)


def _set_subject_of_group(group: GroupDraft, name: str, settings: ScopeSettings) -> None:
    subjects = {other: members for other, members in group.confluent.get("subjects", {}).items() if other != name}
    if not settings.is_empty:
        subjects[name] = settings.members()
    group.confluent = with_facts(group.confluent, subjects=subjects or None)


def set_resource_settings(changes: ChangeSet, resource: ResourceDraft, settings: ScopeSettings) -> None:
    """Sets the settings of a Resource. Its level is its `meta.compatibility`, which no stored Version can refuse."""
    level = settings.config.get(LEVEL)
    config: dict[str, Any] = {name: value for name, value in settings.config.items() if name != LEVEL}
    if level == NONE_LEVEL:
        config[LEVEL] = level
    resource.confluent = with_facts(resource.confluent, config=config or None, mode=settings.mode)
    compatibility = level.lower() if level is not None and level != NONE_LEVEL else None
    if resource.meta.attributes.get("compatibility") != compatibility:
        changes.accepted_resources.add(resource.xid)
        write_meta(changes, resource, {"compatibility": compatibility}, WriteOptions(patch=True))
    elif not resource.is_new:
        resource.meta.touch()


def _clear_modes(changes: ChangeSet, registry: SchemaRegistry, scope: Subject) -> None:
    """Clears the modes of all subjects in a context (CSR-708)."""
    group_id = registry.group(scope.context)
    if group_id is None:
        return
    xid = xids.join(GROUPS, group_id)
    for entity in changes.world.members(xids.join(GROUPS, group_id, RESOURCES)):
        if facts_of(entity.private).get("mode") is not None:
            resource = changes.resource(entity.xid)
            resource.confluent = with_facts(resource.confluent, mode=None)
            resource.meta.touch()
    subjects = facts_of(changes.existing_entity(xid).private).get("subjects", {})
    if any("mode" in members for members in subjects.values()):
        group = changes.group(xid)
        for name, members in subjects.items():
            _set_subject_of_group(group, name, settings_of_facts(members)._replace(mode=None))
        group.touch()

"""Settings of subjects while their Resources come and go, and where settings are kept.

Rules CSR-605, CSR-712, CSR-713, CSR-810.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annals.domain.confluent.commands import WriteSettings
from annals.domain.confluent.facts import facts_of, subject_name, with_facts
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.settings import (
    LEVEL,
    NO_SETTINGS,
    NONE_LEVEL,
    ScopeSettings,
    is_of_registry,
    settings_of_facts,
    settings_of_resource,
)
from annals.domain.confluent.subjects import GROUPS, RESOURCES
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import GroupDraft, ResourceDraft
from annals.domain.decisions.confluent.contexts import record_context
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.decisions.write_resource import WriteOptions, write_meta
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.registry.entities import xref_target
from annals.domain.values import xid as xids


def move_settings_to_resource(changes: ChangeSet, resource: ResourceDraft, name: str) -> None:
    """Moves the settings of a subject that gets its Resource by Confluent's API from its Group to it."""
    settings = _taken_from_group(changes, resource, name)
    if settings is not None:
        set_resource_settings(changes, resource, settings)


def move_settings_to_new_resources(changes: ChangeSet) -> None:
    """Moves the settings of subjects that get their Resources by other APIs from their Groups to these.

    The level is that of the request, also if it has none (CSR-713). Copies of a link stay as they are at its source. A
    Resource with an xref has no settings of its own.
    """
    for resource in changes.resources.values():
        had_none = resource.is_new or (resource.entity is not None and xref_target(resource.entity) is not None)
        if not had_none or resource.is_deleted or resource.xref is not None or resource.link is not None:
            continue
        if not _is_schema(resource.xid):
            continue
        settings = _taken_from_group(changes, resource, subject_name(resource.xid, resource.confluent))
        if settings is not None:
            config = _without_level(settings.config)
            resource.confluent = with_facts(resource.confluent, config=config or None, mode=settings.mode)


def _taken_from_group(changes: ChangeSet, resource: ResourceDraft, name: str) -> ScopeSettings | None:
    """The settings that the Group has of a subject, which it loses; None if it has none."""
    group = changes.group(xids.owners(resource.xid)[0])
    members = group.confluent.get("subjects", {}).get(name)
    if members is None:
        return None
    set_subject_of_group(group, name, NO_SETTINGS)
    return settings_of_facts(members)


def move_settings_to_groups(changes: ChangeSet) -> None:
    """Keeps the settings of subjects that lose their Resource, whichever API deletes it, in their Group.

    A restored Group has those of the past.
    """
    for resource in changes.resources.values():
        stored = resource.entity
        if not resource.is_deleted or stored is None or not _is_schema(resource.xid):
            continue
        compatibility = stored.attributes["meta"].get("compatibility")
        settings = settings_of_resource(facts_of(stored.private), compatibility)
        group = changes.groups.get(xids.stream(xids.owners(resource.xid)[0]))
        if group is None or group.is_deleted or group.xid in changes.restored_groups:
            continue
        could_have_settings = xref_target(stored) is None and resource.link is None
        if could_have_settings or not settings.is_empty:
            set_subject_of_group(group, subject_name(resource.xid, facts_of(stored.private)), settings)


def drop_replaced_levels(changes: ChangeSet) -> None:
    """Drops the fact of the level NONE where another API has set a level, so that it does not come back (CSR-713)."""
    for resource in changes.resources.values():
        config = resource.confluent.get("config", {})
        if LEVEL in config and not resource.is_deleted and resource.meta.attributes.get("compatibility") is not None:
            resource.confluent = with_facts(resource.confluent, config=_without_level(config) or None)


def drop_settings(changes: ChangeSet, group_xid: str, name: str) -> None:
    """Drops the settings of a subject without a Resource: its last version is gone (CSR-605), or it is restored."""
    entity = changes.find(group_xid)
    if entity is not None and name in facts_of(entity.private).get("subjects", {}):
        group = changes.group(group_xid)
        set_subject_of_group(group, name, NO_SETTINGS)
        group.touch()


def _without_level(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name != LEVEL}


def _is_schema(xid: str) -> bool:
    segments = xids.segments(xid)
    return (segments[0], segments[2]) == (GROUPS, RESOURCES)


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
        set_subject_of_group(group, scope.name, settings)
    else:
        members = settings.members()
        group.confluent = with_facts(group.confluent, config=members.get("config"), mode=members.get("mode"))
    group.touch()
    changes.processed.append(command.xid)


def _group(changes: ChangeSet, command: WriteSettings) -> GroupDraft:
    context = command.context_ids.context_of(xids.entity_id(command.xid))
    record_context(changes, command.xid, command.subject, context)
    return changes.group(command.xid)


def set_subject_of_group(group: GroupDraft, name: str, settings: ScopeSettings) -> None:
    subjects = {other: members for other, members in group.confluent.get("subjects", {}).items() if other != name}
    if not settings.is_empty:
        subjects[name] = settings.members()
    group.confluent = with_facts(group.confluent, subjects=subjects or None)


def set_resource_settings(changes: ChangeSet, resource: ResourceDraft, settings: ScopeSettings) -> None:
    """Sets the settings of a Resource. Its level is its `meta.compatibility`, which no stored Version can refuse."""
    level = settings.config.get(LEVEL)
    config = _without_level(settings.config)
    if level == NONE_LEVEL:
        config[LEVEL] = level
    resource.confluent = with_facts(resource.confluent, config=config or None, mode=settings.mode)
    compatibility = level.lower() if level is not None and level != NONE_LEVEL else None
    if resource.meta.attributes.get("compatibility") != compatibility:
        changes.accepted_resources.add(resource.xid)
        write_meta(changes, resource, {"compatibility": compatibility}, WriteOptions(patch=True))
    elif not resource.is_new:
        resource.meta.touch()

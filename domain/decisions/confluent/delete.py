"""Deleting versions, subjects and contexts: soft, which any API can do, and for good, which only this one does.

Rules CSR-314, CSR-601 to CSR-607.
"""

from __future__ import annotations

from collections.abc import Sequence

from annals.domain.confluent.commands import DeleteContext, DeleteSchemas
from annals.domain.confluent.errors import (
    SchemaRegistryError,
    is_referenced,
    not_permitted,
    subject_not_found,
    subject_not_soft_deleted,
    subject_soft_deleted,
    version_not_found,
    version_not_soft_deleted,
    version_soft_deleted,
)
from annals.domain.confluent.facts import facts_of, with_facts
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import READONLY_MODES, effective_mode
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import VersionDraft
from annals.domain.decisions.confluent.shared_subjects import check_not_shared
from annals.domain.decisions.confluent.subject_settings import drop_settings
from annals.domain.decisions.confluent.world_entities import entity_finder
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.decisions.rules.removal import check_removable
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.values import xid as xids


def delete_schemas(changes: ChangeSet, command: DeleteSchemas) -> None:
    """Applies one DeleteSchemas to a change; `processed` and `deleted_numbers` have what it deletes.

    Raises: SchemaRegistryError; any Problem of a deletion.
    """
    registry = SchemaRegistry(changes.world.schemas, entity_finder(changes.world), command.context_ids)
    versions = registry.versions(command.subject).all
    targets = _single_target(command, versions) if command.version is not None else _all_targets(command, versions)
    _check_mode(registry, command)
    for version in targets:
        _check_target(registry, command, version)
    if command.permanent:
        forget_subject(changes, command.xid, command.subject.name, versions, targets)
    else:
        delete_versions(changes, targets)
    changes.processed += [version.xid for version in targets]
    changes.deleted_numbers += [version.number for version in targets]


def delete_context(changes: ChangeSet, command: DeleteContext) -> None:
    """Applies one DeleteContext to a change. Raises: SchemaRegistryError."""
    entity = changes.find(command.xid)
    if entity is None:
        return
    counts = (f"{plural}count" for plural in changes.group_type(entity.xid).resources)
    if any(entity.attributes.get(count) for count in counts) or changes.world.schemas.has_versions(entity.id):
        raise SchemaRegistryError(42211, f"The specified context '{command.context}' is not empty.")
    check_removable(entity, changes.context.now)
    changes.delete_group(entity)
    changes.processed.append(entity.xid)


def _all_targets(command: DeleteSchemas, versions: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    name = command.subject.qualified
    live = [version for version in versions if version.is_live]
    if not versions:
        raise subject_not_found(name)
    if not command.permanent and not live:
        raise subject_soft_deleted(name)
    return list(versions) if command.permanent else live


def _single_target(command: DeleteSchemas, versions: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    name, number = command.subject.qualified, command.version
    live = [version for version in versions if version.is_live]
    if not versions or (not live and not command.permanent and number == 0):
        raise subject_not_found(name)
    if number == 0:
        if not live:
            raise version_not_found("latest")
        return live[-1:]
    found = [version for version in versions if version.number == number]
    if not found:
        raise version_not_found(number or 0)
    if not command.permanent and not found[-1].is_live:
        raise version_soft_deleted(name, found[-1].number)
    return found[-1:]


def _check_mode(registry: SchemaRegistry, command: DeleteSchemas) -> None:
    if effective_mode(command.subject, registry.settings) in READONLY_MODES or registry.is_readonly(command.subject):
        raise not_permitted(f"Subject {command.subject.qualified} is in read-only mode")
    check_not_shared(registry, xids.entity_id(command.xid), command.subject)


def _check_target(registry: SchemaRegistry, command: DeleteSchemas, version: SchemaVersion) -> None:
    """Raises: SchemaRegistryError if another schema needs the version, or if it has to be soft-deleted first."""
    name = command.subject.qualified
    for referrer in registry.referrers(version):
        is_own = command.version is None and (referrer.group, referrer.subject) == (version.group, version.subject)
        if not is_own and (referrer.is_live or command.permanent):
            raise is_referenced(name, version.number)
    if command.permanent and version.is_live:
        single = version_not_soft_deleted(name, version.number)
        raise single if command.version is not None else subject_not_soft_deleted(name)


def delete_versions(changes: ChangeSet, targets: Sequence[SchemaVersion]) -> None:
    """Deletes Versions as any API does; the Resource goes with its last one."""
    xid = targets[0].resource
    check_writable(changes, xid, frozenset())
    resource = changes.existing_resource(xid)
    check_no_xref(resource)
    changes.load_versions(resource)
    for target in targets:
        changes.version(resource, xids.entity_id(target.xid)).deletion_reason = "deleted"
    resource.membership_changed = resource.needs_completion = True
    if not resource.live_versions():
        check_removable(changes.existing_entity(xid), changes.context.now)


def forget_versions(changes: ChangeSet, targets: Sequence[SchemaVersion]) -> None:
    """Deletes soft-deleted versions for good; in the log they stay."""
    by_stream: dict[str, list[int]] = {}
    for target in targets:
        by_stream.setdefault(target.xid, []).append(target.number)
    for xid, numbers in by_stream.items():
        draft = _live_draft(changes, xid)
        if draft is None:
            changes.forget_schemas(xid, numbers)
        else:  # the Version was created again, so the numbers are in its next image
            draft.confluent = with_facts(draft.confluent, forgotten=numbers)


def _live_draft(changes: ChangeSet, xid: str) -> VersionDraft | None:
    """The draft of a Version; None if it neither exists nor is created by this change."""
    resource_xid, id = xids.resource_of(xid), xids.entity_id(xid)
    loaded = changes.resources.get(xids.stream(resource_xid))
    if loaded is not None and id.lower() in loaded.versions:
        return loaded.versions[id.lower()]
    entity = changes.world.get(xid)
    return changes.version(changes.resource(resource_xid), entity.id) if entity is not None else None


def forget_subject(
    changes: ChangeSet,
    group_xid: str,
    name: str,
    versions: Sequence[SchemaVersion],
    targets: Sequence[SchemaVersion],
) -> None:
    """Deletes versions of a subject for good, and what is left of it with its last one. versions: all that it has."""
    forget_versions(changes, targets)
    remaining = {version.number for version in versions} - {target.number for target in targets}
    stored = changes.world.get(targets[0].resource)
    if stored is not None and "highest" in facts_of(stored.private):
        resource = changes.resource(stored.xid)
        resource.confluent = with_facts(resource.confluent, highest=max(remaining, default=None))
    if not remaining:
        drop_settings(changes, group_xid, name)

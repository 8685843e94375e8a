"""Replaces the model: the effects on the registry and on stored entities.

Spec: model 1.0-rc4, "Creating or Updating the Registry Model". Rules MOD-1, MOD-5, MOD-12, MOD-90 to 96, ENT-105.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from annals.domain.decisions import capabilities
from annals.domain.decisions.changes.after_images import AfterImage
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.rules.stored_entities import MAX_NAMED, StoredEntityErrors
from annals.domain.decisions.write_resource import check_version_order
from annals.domain.decisions.xrefs import is_of_same_type
from annals.domain.errors.problems import (
    HasdocumentViolation,
    MalformedXref,
    ModelComplianceError,
    Problem,
)
from annals.domain.model import GroupType, Model, compile_model
from annals.domain.model.compare import changed_types, lost_types, referring_types, related_types
from annals.domain.model.group_constraints import group_constraints
from annals.domain.registry.entities import Entity
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json, is_equal


def replace_model(changes: ChangeSet, source: Json, *, patch: bool = False) -> None:
    """Sets a new model for the rest of the change; stored entities are validated against it at its end.

    patch: it came in a PATCH of the registry, which replaces the model nevertheless (MOD-90). An equal source changes
    nothing.
    Raises: the model problems, ActionNotSupported.
    """
    previous = changes.model
    if is_equal(source, previous.source):
        return
    capabilities.require_mutable(changes, "modelsource", patch=patch)
    changes.model = compile_model(source, kept_groups=previous.groups)
    _check_types(changes, previous)
    _update_levels(changes)
    names = ["modelsource"] if changes.model.full == previous.full else ["model", "modelsource"]
    record_model(changes, tuple(names))
    registry = changes.registry()
    registry.always_changed |= set(names)
    registry.touch()


def record_model(changes: ChangeSet, changed_names: tuple[str, ...] = ()) -> None:
    """Records the current model."""
    current = changes.world.get(xids.MODEL)
    changes.root_after_images[xids.MODEL] = AfterImage(
        xids.MODEL,
        current.epoch + 1 if current else 1,
        {"modelsource": changes.model.source, "model": changes.model.full},
        {"origins": changes.model.origins},
        changed=changed_names,
        is_new=current is None,
        is_updated=current is not None,
    )


def check_stored_entities(changes: ChangeSet) -> None:
    """Validates every stored entity of a changed type against the new model (MOD-93).

    O(entities of the changed types). Raises: ModelComplianceError with the offenders, HasdocumentViolation.
    """
    if changes.model is changes.world.model:
        return
    offenders = StoredEntityErrors()
    for xid in _affected_xids(changes):
        try:
            _comply_entity(changes, xid)
        except HasdocumentViolation:
            raise
        except Problem as problem:
            offenders.add(xid, problem)
    offenders.refuse()


def _affected_xids(changes: ChangeSet) -> Iterator[str]:
    types = changed_types(changes.world.model, changes.model)
    if lost_types(changes.world.model, changes.model):
        types |= referring_types(changes.model)
    types |= related_types(changes.world.model, types)
    types |= {type.partition(".")[0] for type in types}  # a Group's constraints name attributes of its Resource types
    if xids.REGISTRY in types:
        yield xids.REGISTRY
    for type in sorted(types - {xids.REGISTRY}):
        yield from (entity.xid for entity in _remaining_entities(changes, type))


def _comply_entity(changes: ChangeSet, xid: str) -> None:
    depth = xids.type_of(xid).count(".")
    if xid == xids.REGISTRY:
        changes.registry().comply_with_model()
    elif depth == 0:
        group = changes.group(xid)
        group.comply_with_model()
        group_constraints(changes.group_type(xid), group.attributes.get("constraints"), xid)
    else:
        _comply_resource(changes, xid)


def _comply_resource(changes: ChangeSet, xid: str) -> None:
    resource = changes.resource(xid)
    if resource.xref is not None:  # a model can refuse nothing but the type of its target (ENT-130)
        if not is_of_same_type(changes, resource, resource.xref):
            raise MalformedXref(xref=resource.xref, error_detail=f'it is no longer of the type of "{xid}"')
        return
    changes.load_versions(resource)
    resource.meta.comply_with_model()
    for version in resource.live_versions():
        if not resource.type.hasdocument and _has_document(version, resource):
            raise HasdocumentViolation(version.xid, plural=resource.type.plural)
        check_version_order(resource.type, version)
        version.comply_with_model()
    resource.needs_completion = True


def _has_document(version: VersionDraft, resource: ResourceDraft) -> bool:
    stored = version.before or {}
    return version.document is not None or stored.get(resource.type.singular + "url") is not None


def _check_types(changes: ChangeSet, previous: Model) -> None:
    """A type with instances that stay can neither be removed nor change its singular (MOD-1, MOD-5)."""
    for plural, group in previous.groups.items():
        new_group = changes.model.groups.get(plural)
        if new_group is None or new_group.singular != group.singular:
            _check_unused(changes, plural)
        else:
            _check_resource_types(changes, group, new_group)


def _check_resource_types(changes: ChangeSet, group: GroupType, new_group: GroupType) -> None:
    for plural, type in group.resources.items():
        new_type = new_group.resources.get(plural)
        if new_type is None or new_type.singular != type.singular:
            _check_unused(changes, f"{group.plural}.{plural}")


def _check_unused(changes: ChangeSet, type: str) -> None:
    remaining = (
        entity.xid
        for entity in _remaining_entities(changes, type)
        if xids.stream(entity.xid) not in changes.restored_streams
    )
    if first_ones := list(islice(remaining, MAX_NAMED)):
        detail = f'"{first_ones[0]}" is an instance of "{type}", which the new model removes or renames'
        raise ModelComplianceError(detail=detail, extensions={"entities": first_ones})


def _remaining_entities(changes: ChangeSet, type: str) -> Iterator[Entity]:
    """The entities of a type that must comply with a new model.

    If a link delivers the model, the entities in its scope are left out. Their own log deletes them together with the
    type.
    """
    links_by_id = {link.id: link for link in changes.world.links if link.follows_log}
    link = links_by_id.get(changes.context.caller.link)
    for entity in changes.world.entities_of_type(type):
        if not changes.is_deleted(entity.xid) and not (link and link.scope.has(entity.xid)):
            yield entity


def _update_levels(changes: ChangeSet) -> None:
    """Drafts made under the old model get their types and levels from the new one."""
    for draft in changes.groups.values():
        if draft.xid == xids.REGISTRY:
            draft.level = changes.model.registry
        elif not draft.is_deleted:
            draft.level = changes.group_type(draft.xid).level
    for resource in changes.resources.values():
        if not changes.is_deleted(resource.xid):
            _, resource.type = changes.resource_type(resource.xid)
            resource.meta.level = resource.type.meta
            for version in resource.versions.values():
                version.level = resource.type.version

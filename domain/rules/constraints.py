"""Constraints of Groups: which values their Resources' attributes may have.

Spec: model 1.0-rc4, "groups.<STRING>.constraints"; core 1.0-rc4, "constraints Attribute". Rules MOD-60 to 64, ENT-138,
ENT-155, ENT-156.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from domain import dotpath
from domain import xid as xids
from domain.changes import ChangeSet
from domain.drafts import GroupDraft, ResourceDraft
from domain.entities import Attributes
from domain.model import GroupType
from domain.model.narrowing import Bounds, in_force
from domain.problems import ConstraintFailure
from domain.rules.sameness import compared


def constraints_hold(changes: ChangeSet) -> None:
    """Holds all Versions that the change reached against the Groups that bind them.

    A Group whose constraints, or whose attributes that they name, have changed binds all its Resources anew.
    Raises: ConstraintFailure, InvalidAttribute.
    """
    for group in list(changes.groups.values()):
        if group.xid != xids.REGISTRY and group.written and not group.deleted:
            _check_group(changes, group)
    known: dict[str, Bounds] = {}
    for resource in list(changes.resources.values()):
        if not resource.deleted:
            _check_resource(changes, resource, known)


def defaults_in(changes: ChangeSet, resource: ResourceDraft) -> Mapping[tuple[str, ...], Any]:
    """Defaults that a Group's own constraints give to attributes of its Resources, by path (ENT-155)."""
    group = changes.group(owner_of(resource.xid))
    own = group.attributes.get("constraints")
    if not own:
        return {}
    bounds = _of(in_force(changes.group_type(group.xid), own, group.xid), resource.type.plural)
    return {path: row["default"] for path, row in bounds.items() if "default" in row}


def owner_of(resource: str) -> str:
    """The Group of a Resource."""
    return xids.join(*xids.segments(resource)[:2])


def _check_group(changes: ChangeSet, group: GroupDraft) -> None:
    """Brings in every Resource that a change of the Group may have put in the wrong (ENT-156)."""
    type = changes.group_type(group.xid)
    bounds = in_force(type, group.attributes.get("constraints"), group.xid)
    if group.before is None or not _differ(group, bounds):
        return
    for plural in {path[0] for path in bounds}:
        for entity in changes.world.members(f"{group.xid}/{plural}"):
            resource = changes.resource(entity.xid)
            if not resource.deleted:
                changes.load_versions(resource)


def _differ(group: GroupDraft, bounds: Bounds) -> bool:
    before, after = group.before or {}, group.attributes
    if before.get("constraints") != after.get("constraints"):
        return True
    named = [dotpath.parse(row["equals"]) for row in bounds.values() if row.get("equals")]
    return any(dotpath.find(before, path) != dotpath.find(after, path) for path in named)


def _check_resource(changes: ChangeSet, resource: ResourceDraft, known: dict[str, Bounds]) -> None:
    """known: the constraints of Groups that were worked out already."""
    shown = _pointed_at(changes, resource) if resource.xref is not None else _versions(resource)
    for group_xid, subject in _binding(changes, resource):
        if group_xid not in known:
            known[group_xid] = _bounds(changes, group_xid)
        bounds = _of(known[group_xid], resource.type.plural)
        if bounds:
            group = changes.group(group_xid).attributes
            for attributes in shown:
                _check(subject, attributes, bounds, group)


def _binding(changes: ChangeSet, resource: ResourceDraft) -> Iterator[tuple[str, str]]:
    """The Groups that bind a Resource: its own, and those of the pointers that show it (ENT-138)."""
    yield owner_of(resource.xid), resource.xid
    if resource.xref is None and not resource.new:
        for source in changes.world.sources(resource.xid):
            yield owner_of(source), resource.xid


def _bounds(changes: ChangeSet, group: str) -> Bounds:
    type: GroupType = changes.group_type(group)
    return in_force(type, changes.group(group).attributes.get("constraints"), group)


def _of(bounds: Bounds, plural: str) -> Bounds:
    return {path[1:]: row for path, row in bounds.items() if path[0] == plural}


def _versions(resource: ResourceDraft) -> list[Attributes]:
    return [version.attributes for version in resource.living()]


def _pointed_at(changes: ChangeSet, resource: ResourceDraft) -> list[Attributes]:
    """The Versions that a pointer shows: those of its target, as they are after this change."""
    assert resource.xref is not None, "asked of pointers only"
    target = changes.find(resource.xref)
    if target is None or "xref" in target.attributes["meta"] or not resource.meta.written:
        return []
    changed = changes.resources.get(xids.stream(resource.xref))
    if changed is not None:
        changes.load_versions(changed)
        return _versions(changed)
    return [entity.attributes for entity in changes.world.members(target.xid + "/versions")]


def _check(subject: str, attributes: Attributes, bounds: Bounds, group: Attributes) -> None:
    for path, row in bounds.items():
        value = compared(path, dotpath.find(attributes, path))
        if row.get("enum") and value is not None and value not in [compared(path, each) for each in row["enum"]]:
            raise ConstraintFailure(subject, path=dotpath.text(path), kind="enum")
        wanted = dotpath.find(group, dotpath.parse(row["equals"])) if row.get("equals") else None
        if wanted is not None and value != compared(path, wanted):
            raise ConstraintFailure(subject, path=dotpath.text(path), kind="equals")

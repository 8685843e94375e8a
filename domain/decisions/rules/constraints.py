"""Constraints of Groups: the values that their Resources' attributes may have.

Spec: model 1.0-rc4, "groups.<STRING>.constraints"; core 1.0-rc4, "constraints Attribute". Rules MOD-60 to 64, ENT-138,
ENT-155, ENT-156.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import GroupDraft, ResourceDraft
from annals.domain.decisions.rules.equality import comparable_value
from annals.domain.errors.problems import ConstraintFailure
from annals.domain.model import ResourceType
from annals.domain.model.group_constraints import ConstraintsByPath, check_defaults, group_constraints
from annals.domain.registry.entities import Attributes
from annals.domain.values import dot_path
from annals.domain.values import xid as xids

_CONSTRAINTS: Final = "constraints"


def check_constraints(changes: ChangeSet) -> None:
    """Checks the result of the change against the constraints of the Groups that show it.

    A Group shows its own Resources and, through xrefs, Resources of other Groups (ENT-138). A Version is checked
    against each of these Groups. If a Group's constraints change, or the attributes that they name, all its Resources
    are checked again.
    Raises: ConstraintFailure, InvalidAttribute.
    """
    constraints_by_group = _GroupConstraints(changes)
    for group in list(changes.groups.values()):
        if group.xid != xids.REGISTRY and group.is_updated and not group.is_deleted:
            bounds = constraints_by_group.constraints_of(group.xid)
            if _has_new_constraints(group):
                check_defaults(changes.group_type(group.xid), group.attributes.get(_CONSTRAINTS), group.xid)
            _load_affected_resources(changes, group, bounds)
    remaining = [
        resource_draft
        for resource_draft in changes.resources.values()
        if not (resource_draft.is_deleted or changes.is_deleted(resource_draft.xid))
    ]
    changes.world.prefetch_xref_sources(
        resource_draft.xid for resource_draft in remaining if resource_draft.xref is None
    )
    for resource in remaining:
        if resource.xref is not None:
            _check_pointer(changes, resource, resource.xref, constraints_by_group)
        else:
            _check_versions(changes, resource, constraints_by_group)


def constraint_defaults(changes: ChangeSet, resource: ResourceDraft) -> Mapping[tuple[str, ...], Any]:
    """Defaults that a Group's own constraints define for attributes of its Resources, by path (ENT-155)."""
    group = changes.group(group_of_resource(resource.xid))
    constraints = group.attributes.get(_CONSTRAINTS)
    if not constraints:
        return {}
    bounds = _constraints_of_type(
        group_constraints(changes.group_type(group.xid), constraints, group.xid), resource.type.plural
    )
    return {path: row["default"] for path, row in bounds.items() if "default" in row}


def group_of_resource(resource: str) -> str:
    """The Group of a Resource."""
    return xids.join(*xids.segments(resource)[:2])


class _GroupConstraints:
    """The constraints of Groups that result from the change; each Group's are computed once."""

    def __init__(self, changes: ChangeSet) -> None:
        self._changes = changes
        self._cache: dict[str, ConstraintsByPath] = {}

    def constraints_of(self, group: str) -> ConstraintsByPath:
        """The constraints for all Resources of a Group. Raises: InvalidAttribute."""
        if group not in self._cache:
            constraints = self._changes.group(group).attributes.get(_CONSTRAINTS)
            self._cache[group] = group_constraints(self._changes.group_type(group), constraints, group)
        return self._cache[group]

    def check(self, shown_xid: str, plural: str, versions: Iterable[Attributes], error_subject: _ErrorSubject) -> None:
        """Checks Versions against the constraints of the Group in which a Resource shows them.

        Raises: ConstraintFailure.
        """
        group = group_of_resource(shown_xid)
        bounds = _constraints_of_type(self.constraints_of(group), plural)
        if bounds:
            attributes, type = self._changes.group(group).attributes, self._changes.group_type(group).resources[plural]
            for version in versions:
                _check_version(version, type, bounds, attributes, error_subject)


@dataclass(frozen=True, slots=True)
class _ErrorSubject:
    """What an error names. detail: the owner of the constraint, if it is not the Resource's own Group."""

    resource: str
    detail: str | None = None


def _load_affected_resources(changes: ChangeSet, group: GroupDraft, bounds: ConstraintsByPath) -> None:
    """Loads every Resource that a change of the Group may have made invalid (ENT-156)."""
    if group.is_new or not _has_changed(group, bounds):
        return
    for plural in {path[0] for path in bounds}:
        for entity in changes.world.members(f"{group.xid}/{plural}"):
            resource = changes.resource(entity.xid)
            if not resource.is_deleted:
                changes.load_versions(resource)


def _has_changed(group: GroupDraft, bounds: ConstraintsByPath) -> bool:
    if _has_new_constraints(group):
        return True
    previous, current = group.before or {}, group.attributes
    referenced_paths = [dot_path.parse(row["equals"]) for row in bounds.values() if row.get("equals")]
    return any(dot_path.find(previous, path) != dot_path.find(current, path) for path in referenced_paths)


def _has_new_constraints(group: GroupDraft) -> bool:
    return (group.before or {}).get(_CONSTRAINTS) != group.attributes.get(_CONSTRAINTS)


def _check_versions(changes: ChangeSet, resource: ResourceDraft, constraints_by_group: _GroupConstraints) -> None:
    """Checks the loaded Versions against their own Group and against the Groups whose xrefs show them."""
    versions, plural = _version_attributes(resource), resource.type.plural
    if not versions:
        return
    constraints_by_group.check(resource.xid, plural, versions, _ErrorSubject(resource.xid))
    for source in changes.world.xref_sources(resource.xid):
        if xids.stream(source) not in changes.resources and not changes.is_deleted(source):
            constraints_by_group.check(
                source, plural, versions, _ErrorSubject(resource.xid, _constraint_owner(changes, source))
            )


def _constraint_owner(changes: ChangeSet, source: str) -> str | None:
    if not changes.context.caller.can_read(source):
        return None
    return f'"{source}" shows it in "{group_of_resource(source)}", whose constraint it is'


def _check_pointer(
    changes: ChangeSet, resource: ResourceDraft, target: str, constraints_by_group: _GroupConstraints
) -> None:
    """Checks the Versions that an xref shows against its Group: the target's Versions, as this change leaves them."""
    constraints_by_group.check(
        resource.xid, resource.type.plural, _target_versions(changes, target), _ErrorSubject(resource.xid)
    )


def _constraints_of_type(bounds: ConstraintsByPath, plural: str) -> ConstraintsByPath:
    return {path[1:]: row for path, row in bounds.items() if path[0] == plural}


def _version_attributes(resource: ResourceDraft) -> list[Attributes]:
    return [version.attributes for version in resource.live_versions()]


def _target_versions(changes: ChangeSet, target: str) -> Iterator[Attributes]:
    """The Versions of a Resource that has no xref itself, read lazily."""
    draft = changes.resources.get(xids.stream(target))
    if changes.is_deleted(target):
        return
    if draft is not None:
        if draft.xid == target and draft.xref is None:
            changes.load_versions(draft)
            yield from _version_attributes(draft)
        return
    entity = changes.find(target)
    if entity is not None and "xref" not in entity.attributes["meta"]:
        yield from (version.attributes for version in changes.world.members(f"{target}/versions"))


def _check_version(
    version: Attributes,
    type: ResourceType,
    bounds: ConstraintsByPath,
    group: Attributes,
    error_subject: _ErrorSubject,
) -> None:
    for path, row in bounds.items():
        value = comparable_value(type, path, dot_path.find(version, path))
        if (
            row.get("enum")
            and value is not None
            and value not in [comparable_value(type, path, allowed) for allowed in row["enum"]]
        ):
            raise ConstraintFailure(
                error_subject.resource, path=dot_path.text(path), kind="enum", detail=error_subject.detail
            )
        required_value = dot_path.find(group, dot_path.parse(row["equals"])) if row.get("equals") else None
        if required_value is not None and value != comparable_value(type, path, required_value):
            raise ConstraintFailure(
                error_subject.resource, path=dot_path.text(path), kind="equals", detail=error_subject.detail
            )

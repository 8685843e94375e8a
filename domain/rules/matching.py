"""`matchversions`: attributes that all Versions of a Resource share (MOD-36)."""

from __future__ import annotations

from domain import dotpath
from domain.changes import ChangeSet
from domain.drafts import ResourceDraft
from domain.jsontext import dumps
from domain.problems import MismatchedVersionAttribute
from domain.rules.sameness import comparable_value


def versions_match(changes: ChangeSet) -> None:
    """Raises: MismatchedVersionAttribute where Versions that a change leaves behind differ, or one lacks the value."""
    for resource in changes.resources.values():
        if resource.type.matchversions and not resource.deleted and _is_touched(resource):
            changes.load_versions(resource)
            for path in resource.type.matchversions:
                found = (dotpath.find(version.attributes, path) for version in resource.living())
                values = {dumps(comparable_value(path, value)) for value in found}
                if len(values) > 1:
                    raise MismatchedVersionAttribute(resource.xid, name=dotpath.text(path))


def _is_touched(resource: ResourceDraft) -> bool:
    return resource.unsettled or any(version.written for version in resource.versions.values())

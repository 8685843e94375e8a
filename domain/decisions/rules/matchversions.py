"""`matchversions`: attributes that all Versions of a Resource share (MOD-36)."""

from __future__ import annotations

from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import ResourceDraft
from annals.domain.decisions.rules.equality import comparable_value
from annals.domain.errors.problems import MismatchedVersionAttribute
from annals.domain.values import dot_path


def check_matching_versions(changes: ChangeSet) -> None:
    """Raises: MismatchedVersionAttribute if Versions differ after the change, or one lacks the value."""
    for resource in changes.resources.values():
        if resource.type.matchversions and not resource.is_deleted and _is_touched(resource):
            if not resource.only_appends:  # then the newest Version stands for the others, which agree with it
                changes.load_versions(resource)
            for path in resource.type.matchversions:
                version_values = (dot_path.find(version.attributes, path) for version in resource.live_versions())
                values = {comparable_value(resource.type, path, value) for value in version_values}
                if len(values) > 1:
                    raise MismatchedVersionAttribute(resource.xid, name=dot_path.text(path))


def _is_touched(resource: ResourceDraft) -> bool:
    return resource.needs_completion or any(version.is_written for version in resource.versions.values())

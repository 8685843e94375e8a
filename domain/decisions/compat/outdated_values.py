"""Values of the legacy APIs are valid only while the registry's attributes agree; any other write may invalidate them.

Rules LEG-303, LEG-701, LEG-1203.
"""

from __future__ import annotations

from typing import Final

from annals.domain.compat import formats
from annals.domain.compat.catalog import METASCHEMAS, version_formats
from annals.domain.compat.catalog.attributes import to_document
from annals.domain.compat.catalog.groups import XREGISTRY_FORMAT
from annals.domain.compat.errors import Conflict
from annals.domain.compat.legacy_apis import FACADE, MESSAGECATALOG, SCHEMAREGISTRY, legacy_api_of, without_members
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import GroupDraft, ResourceDraft, VersionDraft
from annals.domain.decisions.compat import group_formats
from annals.domain.values import xid as xids

#: The attributes of a Group that determine its format.
_FORMAT_ATTRIBUTES: Final = ("format", "envelope", "protocol")


def drop_outdated_values(changes: ChangeSet) -> None:
    """Drops spellings and documents that no longer agree with the registry's own attributes.

    Raises: Conflict if a Version that a legacy API adds would be pruned immediately.
    """
    if changes.number is not None and any(changes.is_version_deleted(xid) for xid in changes.processed):
        raise Conflict(error_detail="it would be older than every version that the limit on versions retains")
    for group in changes.groups.values():
        if group.facade and _is_outdated(group):
            group.facade = without_members(group.facade, "format")
    for resource in changes.resources.values():
        if resource.type.hasdocument:
            if resource.facade:
                _check_format(resource)
        elif legacy_api_of(resource.xid) == MESSAGECATALOG:
            for version in resource.live_versions():
                if version.is_written:
                    _check_document(changes, version)


def _is_outdated(group: GroupDraft) -> bool:
    """Whether the attributes that determine a Group's format changed while its spelling did not."""
    stored = group.entity
    if stored is None or not group.is_written or group.facade != stored.private.get(FACADE):
        return False
    return any(stored.attributes.get(name) != group.attributes.get(name) for name in _FORMAT_ATTRIBUTES)


def _check_format(resource: ResourceDraft) -> None:
    spelling = resource.facade.get("format")
    if spelling is None or legacy_api_of(resource.xid) != SCHEMAREGISTRY:
        return
    if any(
        not formats.is_same_format(spelling, version.attributes.get("format") or "")
        for version in resource.live_versions()
    ):
        resource.facade = without_members(resource.facade, "format")


def _check_document(changes: ChangeSet, version: VersionDraft) -> None:
    """Drops an unchanged document if its message now differs.

    Content that no attribute holds, such as a document of a format without rules, cannot differ.
    """
    stored, document = version.entity, version.facade.get("document")
    if stored is None or document is None or document != stored.private.get(FACADE, {}).get("document"):
        return
    group = changes.existing_entity(xids.join(*xids.segments(version.xid)[:2]))
    group_format = group_formats.stored_group_format(MESSAGECATALOG, group) or XREGISTRY_FORMAT
    format = version_formats.version_format(stored.attributes, version.facade, group_format)
    if not (format in METASCHEMAS or format == XREGISTRY_FORMAT):
        return
    unmapped = version.facade.get("left", {})
    if to_document(format, stored.attributes, unmapped) != to_document(format, version.attributes, unmapped):
        version.facade = version_formats.without_document(version.attributes, version.facade, format, group_format)

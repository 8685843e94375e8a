"""Settles a Resource after everything in a request is written: ancestors, default Version, pruning, roots.

Spec: core 1.0-rc4, "Resource Processing Algorithm", steps 3, 5 and 10; rules ENT-80 to 85, ENT-100 to 108.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.decisions.changes.change_set import ChangeSet
from domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from domain.decisions.rules import ancestry
from domain.decisions.rules.ancestry import VersionLineage
from domain.errors.problems import (
    AncestorCircularReference,
    MultipleRoots,
    SetdefaultversionstickyFalse,
    UnknownId,
)


def resources_settle(changes: ChangeSet) -> None:
    """Settles every Resource in the change; a Resource that lost its last Version is deleted (ENT-108)."""
    for resource in list(changes.resources.values()):
        if not resource.deleted and resource.xref is None and (resource.is_new or resource.needs_settling):
            settle(changes, resource)


def settle(changes: ChangeSet, resource: ResourceDraft) -> None:
    """Computes one Resource's ancestors, default Version and pruning, and updates the epochs that depend on them."""
    changes.load_versions(resource)
    if not resource.live_versions():
        if resource.default_request.id is not None:
            raise UnknownId(resource.xid, singular="version", id=resource.default_request.id)
        changes.delete_resource(resource)
        return
    if resource.meta.is_new and not resource.meta.written:
        resource.meta.write({}, patch=False, kept=resource.meta_ids())
    lines = _assign_ancestors(resource)
    default, sticky = _default(resource, lines)
    lines = _prune(resource, lines, default)
    if all(line.id != default for line in lines):  # `maxversions` is 1, and another Version stays
        default = ancestry.newest_version(resource.type.versionmode, lines).id
    _check(resource, lines)
    for line in lines:
        _assign(resource.versions[line.id.lower()], line, resource.type.versionmode)
    _point(resource, default, sticky)


def _lineage(draft: VersionDraft) -> VersionLineage:
    attributes = draft.attributes
    return VersionLineage(
        draft.id, draft.ancestorid, attributes["createdat"], draft.ordered or attributes["modifiedat"]
    )


def _assign_ancestors(resource: ResourceDraft) -> list[VersionLineage]:
    living = resource.live_versions()
    ids = {draft.id for draft in living}
    for draft in living:
        if draft.ancestor is not None and draft.ancestor not in ids:
            raise UnknownId(draft.xid, singular="version", id=draft.ancestor)
    stored = [_lineage(draft) for draft in living if not draft.is_new]
    added = [_lineage(draft) for draft in living if draft.is_new]
    return ancestry.assign_ancestors(resource.type.versionmode, stored, added)


def _default(resource: ResourceDraft, lines: Sequence[VersionLineage]) -> tuple[str, bool]:
    """The id of the default Version, and whether it is sticky (ENT-80 to 84)."""
    wish = resource.default_request
    sticky = wish.sticky if wish.sticky is not None else bool(resource.meta.attributes.get("defaultversionsticky"))
    if sticky and resource.type.maxversions == 1:
        raise SetdefaultversionstickyFalse(resource.xid)
    ids = {line.id for line in lines}
    if sticky and wish.id is not None and wish.id not in ids:
        raise UnknownId(resource.xid, singular="version", id=wish.id)
    named = wish.id or (resource.default_before if wish.keep else None)
    if sticky and named in ids:
        return str(named), True
    lost = sticky and named is not None  # the sticky default was deleted and the request names no other (ENT-81)
    newest = ancestry.newest_version(resource.type.versionmode, lines).id
    return newest, bool(resource.type.meta.definitions["defaultversionsticky"]["default"]) if lost else sticky


def _prune(resource: ResourceDraft, lines: list[VersionLineage], default: str) -> list[VersionLineage]:
    """Removes the oldest Versions beyond `maxversions`; the default stays unless `maxversions` is 1 (ENT-104)."""
    limit, mode = resource.type.maxversions, resource.type.versionmode
    if not limit or len(lines) <= limit:
        return lines
    gone = {
        line.id for line in ancestry.oldest_versions(mode, lines, len(lines) - limit, default if limit > 1 else None)
    }
    for id in gone:
        resource.versions[id.lower()].gone = "pruned"
    resource.membership_changed = True
    return ancestry.assign_ancestors(mode, [line for line in lines if line.id not in gone], [])


def _check(resource: ResourceDraft, lines: Sequence[VersionLineage]) -> None:
    circle = ancestry.find_cycle(lines)
    if circle:
        raise AncestorCircularReference(resource.xid, list=",".join(circle))
    if resource.type.singleversionroot and len(ancestry.root_ids(lines)) > 1:
        raise MultipleRoots(resource.xid, plural=resource.type.plural)


def _assign(draft: VersionDraft, line: VersionLineage, mode: str) -> None:
    """Sets a Version's ancestor; a change is an update, but never changes the ordering time (ENT-71, ENT-101)."""
    if mode == "modifiedat":
        draft.ordered = line.ordered
    if draft.attributes["ancestorid"] != line.ancestor:
        draft.attributes = {**draft.attributes, "ancestorid": line.ancestor}
    if draft.before is not None and draft.before["ancestorid"] != line.ancestor and not draft.written:
        draft.touch()


def _point(resource: ResourceDraft, default: str, sticky: bool) -> None:
    """Sets the default Version in the meta.

    The meta's epoch increases when Versions were added or removed, or when the default changed (ENT-53).
    Raises: what Level.complete raises if the type does not allow the resulting meta.
    """
    meta = resource.meta
    before = meta.before or {}
    moved = before.get("defaultversionid") != default or before.get("defaultversionsticky") != sticky
    if resource.membership_changed or moved:
        meta.touch()
    settled = {**meta.attributes, "defaultversionid": default, "defaultversionsticky": sticky}
    same = meta.attributes.get("defaultversionsticky") is sticky  # and then it has been validated
    meta.attributes = settled if same else meta.level.complete(settled, meta.xid)

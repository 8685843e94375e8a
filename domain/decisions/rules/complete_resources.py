"""Completes a Resource after everything in a request is written: ancestors, default Version, pruning, roots.

Spec: core 1.0-rc4, "Resource Processing Algorithm", steps 3, 5 and 10; rules ENT-80 to 85, ENT-100 to 108.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import NO_DEFAULT_REQUEST, ResourceDraft, VersionDraft
from annals.domain.decisions.rules import ancestry
from annals.domain.decisions.rules.ancestry import VersionLineage
from annals.domain.errors.problems import (
    AncestorCircularReference,
    MultipleRoots,
    SetdefaultversionstickyFalse,
    UnknownId,
)
from annals.domain.values import xid as xids


def complete_resources(changes: ChangeSet) -> None:
    """Completes every Resource in the change; a Resource that lost its last Version is deleted (ENT-108)."""
    for resource in list(changes.resources.values()):
        if not resource.is_deleted and resource.xref is None and (resource.is_new or resource.needs_completion):
            complete_resource(changes, resource)


def complete_resource(changes: ChangeSet, resource: ResourceDraft) -> None:
    """Computes one Resource's ancestors, default Version and pruning, and updates the epochs that depend on them."""
    if (appended := _appended_lineages(changes, resource)) is not None and _prune_chain(changes, resource, appended):
        _complete_appended(changes, resource, appended)
        return
    changes.load_versions(resource)
    _keep_order_of_source(resource)
    if not resource.live_versions():
        if resource.default_request.id is not None:
            raise UnknownId(resource.xid, singular="version", id=resource.default_request.id)
        changes.delete_resource(resource)
        return
    if resource.meta.is_new and not resource.meta.is_written:
        resource.meta.write({}, patch=False, fixed=resource.meta_ids())
    lineages = _assign_ancestors(resource)
    newest = ancestry.newest_version(resource.type.versionmode, lineages).id
    default, sticky = _default_version(resource, newest, {lineage.id for lineage in lineages}.__contains__)
    lineages = _prune(resource, lineages, default)
    resource.newest = ancestry.newest_version(resource.type.versionmode, lineages).id
    # Without the oldest Versions another one may be the newest: with `maxversions: 1`, or where a cycle ends.
    if not sticky or all(lineage.id != default for lineage in lineages):
        default = resource.newest
    _check_lineages(resource, lineages)
    for lineage in lineages:
        _set_ancestor(resource.versions[lineage.id.lower()], lineage, resource.type.versionmode)
    _set_default(resource, default, sticky)
    if 1 < len(lineages) == resource.type.maxversions:  # the next Version will prune
        _note_chain(changes, resource, ancestry.chain_of(lineages))


def _appended_lineages(changes: ChangeSet, resource: ResourceDraft) -> list[VersionLineage] | None:
    """The new Versions, if the change only adds some after the newest one and removes none; then the others can stay
    unread, so that the cost of a new Version does not grow with the number of Versions."""
    newest = _unchanged_newest(changes, resource)
    if newest is None:
        return None
    added = [_lineage_of(version) for version in resource.live_versions() if version.is_new]
    return ancestry.append_in_order(resource.type.versionmode, _lineage_of(newest), added)


def _unchanged_newest(changes: ChangeSet, resource: ResourceDraft) -> VersionDraft | None:
    """The newest Version before the change; None if it is not known, or if the change affects existing Versions."""
    if resource.has_all_versions or not resource.newest or changes.model is not changes.world.model:
        return None
    if any(
        version.deletion_reason is not None or version.source_ancestor or (version.is_updated and not version.is_new)
        for version in resource.versions.values()
    ):
        return None
    is_stored = changes.find(f"{resource.xid}/versions/{resource.newest}") is not None
    return changes.version(resource, resource.newest) if is_stored else None


def _prune_chain(changes: ChangeSet, resource: ResourceDraft, appended: Sequence[VersionLineage]) -> bool:
    """Removes the oldest Versions beyond `maxversions` from a known chain, without reading the others.

    Returns False, and removes nothing, if all Versions have to be read to find which ones to remove.
    """
    assert resource.entity is not None, "it has a newest Version"
    limit, count = resource.type.maxversions, resource.entity.attributes["versionscount"]
    excess = count + len(appended) - limit if limit else 0
    if excess <= 0:
        return True
    chain = changes.world.version_chain(resource.xid)
    if chain is None or len(chain) != count or not _may_prune_chain(resource, chain, excess):
        return False
    changes.world.prefetch(f"{resource.xid}/versions/{id}" for id in chain[: excess + 1])
    for id in chain[:excess]:
        changes.version(resource, id).deletion_reason = "pruned"
    root = changes.version(resource, chain[excess])
    _set_ancestor(root, _lineage_of(root)._replace(ancestor=root.id), resource.type.versionmode)
    _note_chain(changes, resource, (*chain[excess:], *(lineage.id for lineage in appended)))
    return True


def _may_prune_chain(resource: ResourceDraft, chain: Sequence[str], excess: int) -> bool:
    """Whether neither the default Version nor the compatibility of others depends on the Versions that go."""
    attributes = resource.meta.attributes
    return (
        excess < len(chain)
        and chain[-1] == resource.newest
        and resource.default_request == NO_DEFAULT_REQUEST
        and not attributes.get("defaultversionsticky")
        and attributes.get("compatibility") is None
    )


def _note_chain(changes: ChangeSet, resource: ResourceDraft, chain: tuple[str, ...] | None) -> None:
    if chain is not None:
        changes.version_chains[xids.stream(resource.xid)] = chain


def _complete_appended(changes: ChangeSet, resource: ResourceDraft, appended: Sequence[VersionLineage]) -> None:
    """Completes a Resource to which Versions are appended. appended: their lineages, the newest last."""
    resource.only_appends = True
    resource.newest = appended[-1].id if appended else resource.newest
    for lineage in appended:
        _set_ancestor(resource.versions[lineage.id.lower()], lineage, resource.type.versionmode)

    def exists(id: str) -> bool:
        version = resource.versions.get(id.lower())
        return version.id == id if version else changes.find(f"{resource.xid}/versions/{id}") is not None

    default, sticky = _default_version(resource, resource.newest, exists)
    if default != resource.default_before:
        for id in filter(None, (resource.default_before, default)):
            changes.version(resource, id)  # their `isdefault` changes
    _set_default(resource, default, sticky)


def _lineage_of(draft: VersionDraft) -> VersionLineage:
    attributes = draft.attributes
    return VersionLineage(
        draft.id, draft.ancestorid, attributes["createdat"], draft.ordering_time or attributes["modifiedat"]
    )


def _keep_order_of_source(resource: ResourceDraft) -> None:
    """In `modifiedat` mode, gives copied Versions ordering times that keep their order in the registry of origin.

    Their `modifiedat` does not show that order, because a repair of ancestors changes it (ENT-101).
    """
    versions = {draft.id: draft for draft in resource.live_versions()}
    copied_ids = {id for id, draft in versions.items() if draft.source_ancestor is not None}
    if copied_ids:
        stated = [
            _lineage_of(draft)._replace(ancestor=draft.source_ancestor or draft.ancestorid)
            for draft in versions.values()
        ]
        for id, time in ancestry.earlier_ordering_times(stated, copied_ids).items():
            versions[id].ordering_time = time


def _assign_ancestors(resource: ResourceDraft) -> list[VersionLineage]:
    live_versions = resource.live_versions()
    ids = {draft.id for draft in live_versions}
    for draft in live_versions:
        if draft.ancestor is not None and draft.ancestor not in ids:
            raise UnknownId(draft.xid, singular="version", id=draft.ancestor)
    stored = [_lineage_of(draft) for draft in live_versions if not draft.is_new]
    added = [_lineage_of(draft) for draft in live_versions if draft.is_new]
    return ancestry.assign_ancestors(resource.type.versionmode, stored, added)


def _default_version(resource: ResourceDraft, newest: str, exists: Callable[[str], bool]) -> tuple[str, bool]:
    """The id of the default Version, and whether it is sticky (ENT-80 to 84).

    newest: id of the newest Version. exists: whether the Resource has a Version with an id.
    """
    default_request = resource.default_request
    sticky = (
        default_request.is_sticky
        if default_request.is_sticky is not None
        else bool(resource.meta.attributes.get("defaultversionsticky"))
    )
    if sticky and resource.type.maxversions == 1:
        raise SetdefaultversionstickyFalse(resource.xid)
    if sticky and default_request.id is not None and not exists(default_request.id):
        raise UnknownId(resource.xid, singular="version", id=default_request.id)
    requested_id = default_request.id or (resource.default_before if default_request.keeps_current else None)
    if sticky and requested_id is not None and exists(requested_id):
        return requested_id, True
    is_lost = (
        sticky and requested_id is not None
    )  # the sticky default was deleted and the request names no other (ENT-81)
    return newest, bool(resource.type.meta.definitions["defaultversionsticky"]["default"]) if is_lost else sticky


def _prune(resource: ResourceDraft, lineages: list[VersionLineage], default: str) -> list[VersionLineage]:
    """Removes the oldest Versions beyond `maxversions`; the default stays unless `maxversions` is 1 (ENT-104)."""
    limit, mode = resource.type.maxversions, resource.type.versionmode
    if not limit or len(lineages) <= limit:
        return lineages
    pruned_ids = {
        lineage.id
        for lineage in ancestry.oldest_versions(mode, lineages, len(lineages) - limit, default if limit > 1 else None)
    }
    for id in pruned_ids:
        resource.versions[id.lower()].deletion_reason = "pruned"
    resource.membership_changed = True
    return ancestry.assign_ancestors(mode, [lineage for lineage in lineages if lineage.id not in pruned_ids], [])


def _check_lineages(resource: ResourceDraft, lineages: Sequence[VersionLineage]) -> None:
    cycle = ancestry.find_cycle(lineages)
    if cycle:
        raise AncestorCircularReference(resource.xid, list=",".join(cycle))
    if resource.type.singleversionroot and len(ancestry.root_ids(lineages)) > 1:
        raise MultipleRoots(resource.xid, plural=resource.type.plural)


def _set_ancestor(draft: VersionDraft, lineage: VersionLineage, mode: str) -> None:
    """Sets a Version's ancestor; a change is an update, but never changes the ordering time (ENT-71, ENT-101)."""
    if mode == "modifiedat":
        draft.ordering_time = lineage.ordering_time
    if draft.attributes["ancestorid"] != lineage.ancestor:
        draft.attributes = {**draft.attributes, "ancestorid": lineage.ancestor}
    if draft.before is not None and draft.before["ancestorid"] != lineage.ancestor and not draft.is_written:
        draft.touch()


def _set_default(resource: ResourceDraft, default: str, sticky: bool) -> None:
    """Sets the default Version in the meta.

    The meta's epoch increases when Versions were added or removed, or when the default changed (ENT-53).
    Raises: what Level.complete raises if the type does not allow the resulting meta.
    """
    meta = resource.meta
    previous = meta.before or {}
    is_moved = previous.get("defaultversionid") != default or previous.get("defaultversionsticky") != sticky
    if resource.membership_changed or is_moved:
        meta.touch()
    updated = {**meta.attributes, "defaultversionid": default, "defaultversionsticky": sticky}
    is_same_sticky = meta.attributes.get("defaultversionsticky") is sticky  # and then it has been validated
    meta.attributes = updated if is_same_sticky else meta.level.complete(updated, meta.xid)

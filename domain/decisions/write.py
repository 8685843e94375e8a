"""WriteTree: splits the path and the body of a request into writes of single entities, parents first.

Spec: core 1.0-rc4, "Updating Nested Registry Collections"; HTTP binding 1.0-rc4, "Creating or Updating Entities".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from domain.decisions import capabilities, replace_model, xrefs
from domain.decisions.changes.change_set import ChangeSet, xids_in_tree
from domain.decisions.changes.drafts import DefaultVersionRequest, ResourceDraft
from domain.decisions.commands import WriteMethod, WriteTree
from domain.decisions.rules.ids import check_id, take_id
from domain.decisions.rules.readonly import check_writable, is_skipped, sets_readonly
from domain.decisions.write_resource import (
    RESOURCE_MEMBERS,
    WriteOptions,
    map_of_objects,
    pop_entries,
    write_meta,
    write_resource,
    write_version,
)
from domain.decisions.xrefs import check_no_xref
from domain.errors.problems import (
    BadDefaultversionid,
    BadFlag,
    DefaultversionidRequest,
    GroupsOnly,
    MissingVersions,
    Problem,
    ResourcesOnly,
    TooManyVersions,
    UnknownAttribute,
    UnknownGroupType,
    UnknownResourceType,
)
from domain.values import xid as xids
from domain.values.json_text import Json

#: The nested collections of a body: entries by id, by plural.
NestedCollections = dict[str, dict[str, dict[str, Json]]]


def write_tree(changes: ChangeSet, command: WriteTree) -> None:
    """Applies one WriteTree to a change; the rules settle the rest at its end.

    Raises: any Problem of a write.
    """
    asked = (xids.REGISTRY, xids.CAPABILITIES, *xids.owners(command.xid), command.xid)
    changes.world.prefetch([*asked, *xids_in_tree(dict(command.tree), command.xid, changes.model)])
    how = WriteOptions(command.method is WriteMethod.PATCH, command.mediatype, command.ignore, command.keepids)
    parts = xids.segments(command.xid)
    kind = "meta" if len(parts) == 5 and parts[4] == "meta" else len(parts)
    _WRITERS[kind](changes, command, how)
    set_default_version(changes, command)


def write_registry(changes: ChangeSet, body: Mapping[str, Json], how: WriteOptions) -> None:
    """Writes `PUT /` and `PATCH /`: capabilities, the model, the registry's own attributes, then Groups (ENT-68)."""
    given = dict(body)
    if "capabilities" in given:
        value = given.pop("capabilities")
        if "capabilities" not in how.ignore:
            capabilities.write_capabilities(changes, value, patch=how.patch)
    if "modelsource" in given:
        value = given.pop("modelsource")
        if "modelsource" not in how.ignore:
            replace_model.replace_model(changes, value if value is not None else {}, patch=how.patch)
    given.pop("model", None)
    changes.world.prefetch(xids_in_tree(given, xids.REGISTRY, changes.model))
    registry = changes.registry()
    members = _take_collections(given, changes.model.groups, xids.REGISTRY)
    id = registry.before["registryid"] if registry.before else given.get("registryid")
    take_id(given, "registry", str(id), xids.REGISTRY)
    registry.link = changes.context.link or registry.link
    try:
        registry.write(how.effective_body(given), patch=how.patch, kept={"registryid": id})
    except UnknownAttribute as unknown:
        raise _unknown_type(unknown, given, lambda name: UnknownGroupType(xids.REGISTRY, name=name)) from None
    _write_groups(changes, members, how)


def write_group(changes: ChangeSet, xid: str, body: Mapping[str, Json], how: WriteOptions) -> None:
    """Writes a Group and everything nested in it."""
    given = dict(body)
    check_id(xids.entity_id(xid))
    group = changes.group(xid, implied=False)
    type = changes.group_type(xid)
    members = _take_collections(given, type.resources, xid)
    take_id(given, type.singular, xids.entity_id(xid), xid)
    try:
        group.write(how.effective_body(given), patch=how.patch, kept={type.singular + "id": xids.entity_id(xid)})
    except UnknownAttribute as unknown:
        named = partial(UnknownResourceType, xid, group=type.plural)
        raise _unknown_type(unknown, given, lambda name: named(name=name)) from None
    _write_resources(changes, xid, members, how)


def _unknown_type(unknown: Problem, given: Mapping[str, Json], typed: Callable[[str], Problem]) -> Problem:
    """The error for an unknown attribute; a map of objects counts as a collection of an unknown type (HTTP-21)."""
    name = unknown.arguments["name"]
    value = given.get(name)
    meant = isinstance(value, dict) and value and all(isinstance(entry, dict) for entry in value.values())
    return typed(name) if meant else unknown


def _write_groups(changes: ChangeSet, members: NestedCollections, how: WriteOptions) -> list[str]:
    named = []
    for plural, entries in members.items():
        for id, entry in pop_entries(entries):
            named.append(xids.join(plural, check_id(id)))
            write_group(changes, named[-1], entry, how)
    return named


def _write_resources(changes: ChangeSet, group: str, members: NestedCollections, how: WriteOptions) -> list[str]:
    named = []
    for plural, entries in members.items():
        for id, entry in pop_entries(entries):
            xid = f"{group}/{plural}/{check_id(id)}"
            if not is_skipped(changes, xid, how.ignore):
                named.append(xid)
                write_resource(changes, xid, entry, how, None)
    return named


def _take_collections(given: dict[str, Json], plurals: Mapping[str, object], xid: str) -> NestedCollections:
    """Removes nested collections from a body and returns them; their URLs and counts are ignored (ENT-150)."""
    found = {}
    for plural in plurals:
        given.pop(plural + "url", None)
        given.pop(plural + "count", None)
        if plural in given:
            found[plural] = map_of_objects(given.pop(plural), plural, xid)
    return found


# --- one writer for each kind of path ------------------------------------------------------------------------------


def _root(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    if command.method is not WriteMethod.POST:
        write_registry(changes, _rootless(command, "registry"), how)
        changes.processed.append(xids.REGISTRY)
        return
    given = dict(command.tree)
    members = _take_collections(given, changes.model.groups, xids.REGISTRY)
    for name in given:
        raise GroupsOnly(name=name)
    changes.processed += _write_groups(changes, members, how)


def _group_collection(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    plural = xids.segments(command.xid)[0]
    entries = map_of_objects(dict(command.tree), plural, xids.REGISTRY)
    changes.processed += _write_groups(changes, {plural: entries}, how)


def _group(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    type = changes.group_type(command.xid)
    if command.method is not WriteMethod.POST:
        write_group(changes, command.xid, _rootless(command, type.singular), how)
        changes.processed.append(command.xid)
        return
    given = dict(command.tree)
    check_id(xids.entity_id(command.xid))
    members = _take_collections(given, type.resources, command.xid)
    for name in given:
        raise ResourcesOnly(command.xid, name=name)
    changes.group(command.xid)
    changes.processed += _write_resources(changes, command.xid, members, how)


def _resource_collection(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    group, plural = command.xid.rsplit("/", 1)
    entries = map_of_objects(dict(command.tree), plural, group)
    check_id(xids.entity_id(group))
    changes.group(group)
    changes.processed += _write_resources(changes, group, {plural: entries}, how)


def _resource(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    _, type = changes.resource_type(command.xid)
    _check_parents(command.xid)
    check_writable(changes, command.xid, command.ignore)
    if command.method is not WriteMethod.POST:
        write_resource(changes, command.xid, _rootless(command, type.singular), how, command.document)
        changes.processed.append(command.xid)
        return
    given = {name: value for name, value in command.tree.items() if name not in RESOURCE_MEMBERS}
    if "id" in command.ignore:
        given.pop(type.singular + "id", None)
    resource = changes.resource(command.xid)
    check_no_xref(resource)
    version = write_version(changes, resource, None, given, how, command.document)
    changes.processed.append(version.xid)


def _meta(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    xid = command.xid.removesuffix("/meta")
    _check_parents(xid)
    if not sets_readonly(changes, command.tree):
        check_writable(changes, xid, command.ignore)
    resource = changes.resource(xid)
    _write_meta(changes, resource, _rootless(command, resource.type.singular), how)
    changes.processed.append(command.xid)


def _write_meta(changes: ChangeSet, resource: ResourceDraft, body: Mapping[str, Json], how: WriteOptions) -> None:
    """Writes only a meta; a Resource without a Version of its own gets a first one."""
    pointer = xrefs.requested_xref(resource, body, how.patch)
    if pointer is not None:
        xrefs.set_xref(changes, resource, pointer, {}, body)
        return
    if resource.xref is not None:
        xrefs.remove_xref(changes, resource)
    if not resource.live_versions() and resource.has_all_versions:
        write_version(changes, resource, _first_version(body), {}, how)
    write_meta(changes, resource, body, how)


def _version_collection(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    xid = command.xid.removesuffix("/versions")
    entries = map_of_objects(dict(command.tree), "versions", xid)
    _check_parents(xid)
    check_writable(changes, xid, command.ignore)
    resource = changes.resource(xid)
    check_no_xref(resource)
    if resource.is_new and not entries:
        raise MissingVersions()
    for versionid, entry in pop_entries(entries):
        changes.processed.append(write_version(changes, resource, versionid, entry, how).xid)


def _version(changes: ChangeSet, command: WriteTree, how: WriteOptions) -> None:
    xid, versionid = command.xid.split("/versions/")
    _check_parents(xid)
    check_writable(changes, xid, command.ignore)
    resource = changes.resource(xid)
    check_no_xref(resource)
    tree = _rootless(command, resource.type.singular, "version")
    changes.processed.append(write_version(changes, resource, versionid, tree, how, command.document).xid)


_WRITERS: Final[dict[int | str, Callable[[ChangeSet, WriteTree, WriteOptions], None]]] = {
    0: _root,
    1: _group_collection,
    2: _group,
    3: _resource_collection,
    4: _resource,
    5: _version_collection,
    6: _version,
    "meta": _meta,
}


def _rootless(command: WriteTree, *singulars: str) -> Mapping[str, Json]:
    """The body, without the ids of its root entity if `ignore=id` is given (ENT-35)."""
    if "id" not in command.ignore:
        return command.tree
    ids = {singular + "id" for singular in singulars} | (
        {"versionid"} if len(xids.segments(command.xid)) >= 4 else set()
    )
    return {name: value for name, value in command.tree.items() if name not in ids}


def _check_parents(resource: str) -> None:
    _, group, _, id = xids.segments(resource)
    check_id(group)
    check_id(id)


def _first_version(meta: Mapping[str, Json]) -> str | None:
    """The id for the first Version of a Resource that is created through its meta."""
    named = meta.get("defaultversionid")
    return named if isinstance(named, str) else None


# --- the setdefaultversionid flag ----------------------------------------------------------------------------------


def set_default_version(changes: ChangeSet, command: WriteTree) -> None:
    """Applies `setdefaultversionid`, which overrides what the body says about the default Version (FLAG-40 to 43)."""
    value = command.setdefaultversionid
    if value is None:
        return
    parts = xids.segments(command.xid)
    if len(parts) < 4:
        raise BadFlag(flag="setdefaultversionid")
    resource = changes.resource(xids.join(*parts[:4]))
    check_no_xref(resource, "defaultversionid")
    if value == "request":
        value = _requested(changes, command, resource)
    request_default_version(resource, value)


def request_default_version(resource: ResourceDraft, value: str) -> None:
    """Records a `setdefaultversionid` value as the requested default Version: `null` or the id of a Version.

    It is equivalent to the attributes in a meta, so it has no effect if the attribute is read-only (ENT-15).
    """
    if not value:
        raise BadDefaultversionid(value=value, error_detail="it has to name one Version, or be null")
    named = value if value != "null" else None
    accepted = resource.type.meta.accept({"defaultversionsticky": named is not None})
    resource.default_request = DefaultVersionRequest(sticky=accepted.get("defaultversionsticky"), id=named, keep=False)
    resource.needs_settling = True


def _requested(changes: ChangeSet, command: WriteTree, resource: ResourceDraft) -> str:
    if command.method is not WriteMethod.POST:
        raise BadFlag(flag="setdefaultversionid")
    if len(changes.processed) > 1:
        raise TooManyVersions()
    if not changes.processed:
        raise DefaultversionidRequest(resource.xid)
    if len(xids.segments(command.xid)) != 4:
        raise BadFlag(flag="setdefaultversionid")
    return xids.entity_id(changes.processed[0])

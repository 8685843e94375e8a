"""WriteTree: splits the path and the body of a request into writes of single entities, parents first.

Spec: core 1.0-rc4, "Updating Nested Registry Collections"; HTTP binding 1.0-rc4, "Creating or Updating Entities".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from annals.domain.decisions import capabilities, replace_model, xrefs
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.drafts import DefaultVersionRequest, ResourceDraft
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.expected_reads import target_xids
from annals.domain.decisions.rules.ids import check_id, take_id
from annals.domain.decisions.rules.readonly import check_writable, is_skipped, sets_readonly
from annals.domain.decisions.write_resource import (
    RESOURCE_MEMBERS,
    WriteOptions,
    map_of_objects,
    pop_entries,
    write_meta,
    write_resource,
    write_version,
)
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.errors.problems import (
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
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json

#: The nested collections of a body: entries by id, by plural.
NestedCollections = dict[str, dict[str, dict[str, Json]]]


def write_tree(changes: ChangeSet, command: WriteTree) -> None:
    """Applies one WriteTree to a change; the rules complete it at its end.

    Raises: any Problem of a write.
    """
    changes.prefetch_tree(dict(command.tree), command.xid, target_xids(command))
    options = WriteOptions(command.method is WriteMethod.PATCH, command.mediatype, command.ignore, command.keepids)
    segments = xids.segments(command.xid)
    path_kind = "meta" if len(segments) == 5 and segments[4] == "meta" else len(segments)
    _WRITERS_BY_KIND[path_kind](changes, command, options)
    set_default_version(changes, command)


def write_registry(changes: ChangeSet, body: Mapping[str, Json], options: WriteOptions) -> None:
    """Writes `PUT /` and `PATCH /`: capabilities, the model, the registry's own attributes, then Groups (ENT-68)."""
    attributes = dict(body)
    if "capabilities" in attributes:
        value = attributes.pop("capabilities")
        if "capabilities" not in options.ignore:
            capabilities.write_capabilities(changes, value, patch=options.patch)
    if "modelsource" in attributes:
        value = attributes.pop("modelsource")
        if "modelsource" not in options.ignore:
            replace_model.replace_model(changes, value if value is not None else {}, patch=options.patch)
    attributes.pop("model", None)
    changes.prefetch_tree(attributes, xids.REGISTRY)
    registry = changes.registry()
    members = _take_collections(attributes, changes.model.groups, xids.REGISTRY)
    id = registry.before["registryid"] if registry.before else attributes.get("registryid")
    take_id(attributes, "registry", str(id), xids.REGISTRY)
    registry.link = changes.context.caller.link or registry.link
    try:
        registry.write(options.effective_body(attributes), patch=options.patch, fixed={"registryid": id})
    except UnknownAttribute as unknown:
        raise _unknown_type(unknown, attributes, lambda name: UnknownGroupType(xids.REGISTRY, name=name)) from None
    _write_groups(changes, members, options)


def write_group(changes: ChangeSet, xid: str, body: Mapping[str, Json], options: WriteOptions) -> None:
    """Writes a Group and everything nested in it."""
    attributes = dict(body)
    check_id(xids.entity_id(xid))
    group = changes.group(xid, write_implied=False)
    type = changes.group_type(xid)
    members = _take_collections(attributes, type.resources, xid)
    take_id(attributes, type.singular, xids.entity_id(xid), xid)
    try:
        group.write(
            options.effective_body(attributes), patch=options.patch, fixed={type.singular + "id": xids.entity_id(xid)}
        )
    except UnknownAttribute as unknown:
        unknown_type_error = partial(UnknownResourceType, xid, group=type.plural)
        raise _unknown_type(unknown, attributes, lambda name: unknown_type_error(name=name)) from None
    _write_resources(changes, xid, members, options)


def _unknown_type(unknown: Problem, attributes: Mapping[str, Json], make_error: Callable[[str], Problem]) -> Problem:
    """The error for an unknown attribute; a map of objects counts as a collection of an unknown type (HTTP-21)."""
    name = unknown.arguments["name"]
    value = attributes.get(name)
    is_collection = isinstance(value, dict) and value and all(isinstance(entry, dict) for entry in value.values())
    return make_error(name) if is_collection else unknown


def _write_groups(changes: ChangeSet, members: NestedCollections, options: WriteOptions) -> list[str]:
    written_xids = []
    for plural, entries in members.items():
        for id, entry in pop_entries(changes, entries):
            written_xids.append(xids.join(plural, check_id(id)))
            write_group(changes, written_xids[-1], entry, options)
    return written_xids


def _write_resources(changes: ChangeSet, group: str, members: NestedCollections, options: WriteOptions) -> list[str]:
    written_xids = []
    for plural, entries in members.items():
        for id, entry in pop_entries(changes, entries):
            xid = f"{group}/{plural}/{check_id(id)}"
            if not is_skipped(changes, xid, options.ignore):
                written_xids.append(xid)
                write_resource(changes, xid, entry, options, None)
    return written_xids


def _take_collections(attributes: dict[str, Json], plurals: Mapping[str, object], xid: str) -> NestedCollections:
    """Removes nested collections from a body and returns them; their URLs and counts are ignored (ENT-150)."""
    collections = {}
    for plural in plurals:
        attributes.pop(plural + "url", None)
        attributes.pop(plural + "count", None)
        if plural in attributes:
            collections[plural] = map_of_objects(attributes.pop(plural), plural, xid)
    return collections


# --- one writer for each kind of path ------------------------------------------------------------------------------


def _write_registry_tree(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    if command.method is not WriteMethod.POST:
        write_registry(changes, _without_root_ids(command, "registry"), options)
        changes.processed.append(xids.REGISTRY)
        return
    attributes = dict(command.tree)
    members = _take_collections(attributes, changes.model.groups, xids.REGISTRY)
    for name in attributes:
        raise GroupsOnly(name=name)
    changes.processed += _write_groups(changes, members, options)


def _write_group_collection(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    plural = xids.segments(command.xid)[0]
    entries = map_of_objects(dict(command.tree), plural, xids.REGISTRY)
    changes.processed += _write_groups(changes, {plural: entries}, options)


def _write_group_tree(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    type = changes.group_type(command.xid)
    if command.method is not WriteMethod.POST:
        write_group(changes, command.xid, _without_root_ids(command, type.singular), options)
        changes.processed.append(command.xid)
        return
    attributes = dict(command.tree)
    check_id(xids.entity_id(command.xid))
    members = _take_collections(attributes, type.resources, command.xid)
    for name in attributes:
        raise ResourcesOnly(command.xid, name=name)
    changes.group(command.xid)
    changes.processed += _write_resources(changes, command.xid, members, options)


def _write_resource_collection(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    group, plural = command.xid.rsplit("/", 1)
    entries = map_of_objects(dict(command.tree), plural, group)
    check_id(xids.entity_id(group))
    changes.group(group)
    changes.processed += _write_resources(changes, group, {plural: entries}, options)


def _write_resource_tree(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    _, type = changes.resource_type(command.xid)
    _check_parents(command.xid)
    check_writable(changes, command.xid, command.ignore)
    if command.method is not WriteMethod.POST:
        write_resource(changes, command.xid, _without_root_ids(command, type.singular), options, command.document)
        changes.processed.append(command.xid)
        return
    attributes = {name: value for name, value in command.tree.items() if name not in RESOURCE_MEMBERS}
    if "id" in command.ignore:
        attributes.pop(type.singular + "id", None)
    resource = changes.resource(command.xid)
    check_no_xref(resource)
    version = write_version(changes, resource, None, attributes, options, command.document)
    changes.processed.append(version.xid)


def _write_meta_tree(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    xid = command.xid.removesuffix("/meta")
    _check_parents(xid)
    if not sets_readonly(changes, command.tree):
        check_writable(changes, xid, command.ignore)
    resource = changes.resource(xid)
    _write_meta(changes, resource, _without_root_ids(command, resource.type.singular), options)
    changes.processed.append(command.xid)


def _write_meta(changes: ChangeSet, resource: ResourceDraft, body: Mapping[str, Json], options: WriteOptions) -> None:
    """Writes only a meta; a Resource without a Version of its own gets a first one."""
    body = options.effective_meta(body)
    pointer = xrefs.requested_xref(resource, body, options.patch)
    if pointer is not None:
        xrefs.set_xref(changes, resource, pointer, {}, body)
        return
    if resource.xref is not None:
        xrefs.remove_xref(changes, resource)
    if not resource.live_versions() and resource.has_all_versions:
        write_version(changes, resource, _first_versionid(body), {}, options)
    write_meta(changes, resource, body, options)


def _write_version_collection(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    xid = command.xid.removesuffix("/versions")
    entries = map_of_objects(dict(command.tree), "versions", xid)
    _check_parents(xid)
    check_writable(changes, xid, command.ignore)
    resource = changes.resource(xid)
    check_no_xref(resource)
    if resource.is_new and not entries:
        raise MissingVersions()
    for versionid, entry in pop_entries(changes, entries):
        changes.processed.append(write_version(changes, resource, versionid, entry, options).xid)


def _write_version_tree(changes: ChangeSet, command: WriteTree, options: WriteOptions) -> None:
    xid, versionid = xids.resource_of(command.xid), xids.entity_id(command.xid)
    _check_parents(xid)
    check_writable(changes, xid, command.ignore)
    resource = changes.resource(xid)
    check_no_xref(resource)
    tree = _without_root_ids(command, resource.type.singular, "version")
    changes.processed.append(write_version(changes, resource, versionid, tree, options, command.document).xid)


_WRITERS_BY_KIND: Final[dict[int | str, Callable[[ChangeSet, WriteTree, WriteOptions], None]]] = {
    0: _write_registry_tree,
    1: _write_group_collection,
    2: _write_group_tree,
    3: _write_resource_collection,
    4: _write_resource_tree,
    5: _write_version_collection,
    6: _write_version_tree,
    "meta": _write_meta_tree,
}


def _without_root_ids(command: WriteTree, *singulars: str) -> Mapping[str, Json]:
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


def _first_versionid(meta: Mapping[str, Json]) -> str | None:
    """The id for the first Version of a Resource that is created through its meta."""
    versionid = meta.get("defaultversionid")
    return versionid if isinstance(versionid, str) else None


# --- the setdefaultversionid flag ----------------------------------------------------------------------------------


def set_default_version(changes: ChangeSet, command: WriteTree) -> None:
    """Applies `setdefaultversionid`, which overrides what the body says about the default Version (FLAG-40 to 43)."""
    value = command.setdefaultversionid
    if value is None:
        return
    segments = xids.segments(command.xid)
    if len(segments) < 4:
        raise BadFlag(flag="setdefaultversionid")
    resource = changes.resource(xids.join(*segments[:4]))
    check_no_xref(resource, "defaultversionid")
    if value == "request":
        value = _requested_default(changes, command, resource)
    request_default_version(resource, value)


def request_default_version(resource: ResourceDraft, value: str) -> None:
    """Records a `setdefaultversionid` value as the requested default Version: `null` or the id of a Version.

    It is equivalent to the attributes in a meta, so it has no effect if the attribute is read-only (ENT-15).
    """
    if not value:
        raise BadDefaultversionid(value=value, error_detail="it has to name one Version, or be null")
    versionid = value if value != "null" else None
    meta_attributes = resource.type.meta.accept({"defaultversionsticky": versionid is not None})
    resource.default_request = DefaultVersionRequest(
        is_sticky=meta_attributes.get("defaultversionsticky"), id=versionid, keeps_current=False
    )
    resource.needs_completion = True


def _requested_default(changes: ChangeSet, command: WriteTree, resource: ResourceDraft) -> str:
    if command.method is not WriteMethod.POST:
        raise BadFlag(flag="setdefaultversionid")
    if len(changes.processed) > 1:
        raise TooManyVersions()
    if not changes.processed:
        raise DefaultversionidRequest(resource.xid)
    if len(xids.segments(command.xid)) != 4:
        raise BadFlag(flag="setdefaultversionid")
    return xids.entity_id(changes.processed[0])

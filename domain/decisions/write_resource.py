"""Writes a Resource: its Versions and its meta, which are completed at the end of the request.

Spec: core 1.0-rc4, "Resource Processing Algorithm", "Default Version of a Resource"; rules ENT-80 to 108.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from annals.domain.decisions import xrefs
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.documents import encode_document, implied_contenttype, take_document
from annals.domain.decisions.changes.drafts import DefaultVersionRequest, ResourceDraft, VersionDraft
from annals.domain.decisions.rules.ancestry import is_semver
from annals.domain.decisions.rules.constraints import constraint_defaults
from annals.domain.decisions.rules.ids import check_id, check_version_id, take_id
from annals.domain.decisions.rules.readonly import set_readonly
from annals.domain.errors.problems import BadRequest, InvalidAttribute, UnknownAttribute, VersionidNotAllowed
from annals.domain.model import ResourceType
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json

#: Members of a Resource that only a response sets; in a request they are ignored (ENT-150).
NAVIGATION: Final = ("self", "shortself", "xid", "metaurl", "versionsurl", "versionscount")
#: The entities nested in a Resource.
NESTED: Final = ("meta", "versions")
#: The members of a Resource that are not attributes of its default Version (HTTP-24).
RESOURCE_MEMBERS: Final = (*NAVIGATION, *NESTED)
#: The members of a meta that `ignore` may name.
_IGNORED_IN_META: Final = frozenset(("epoch", "defaultversionid", "defaultversionsticky"))


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a request that apply to every part of its tree."""

    patch: bool
    mediatype: str = "application/json"
    ignore: frozenset[str] = frozenset()
    keepids: bool = False

    def effective_body(self, body: dict[str, Json]) -> dict[str, Json]:
        """The relevant part of a body: without its epoch if `ignore=epoch` is given."""
        return body if "epoch" not in self.ignore else {name: value for name, value in body.items() if name != "epoch"}

    def effective_meta(self, body: Mapping[str, Json]) -> dict[str, Json]:
        """The relevant part of a meta: without the members that `ignore` names."""
        ignored = _IGNORED_IN_META & self.ignore
        return {name: value for name, value in body.items() if name not in ignored}


def write_resource(
    changes: ChangeSet, xid: str, body: Mapping[str, Json], options: WriteOptions, document: bytes | None
) -> None:
    """Applies steps 1, 2 and 4 of the algorithm; `complete_resource` does the rest once for the whole request."""
    attributes = dict(body)
    check_id(xids.entity_id(xid))
    resource = changes.resource(xid)
    take_id(attributes, resource.type.singular, xids.entity_id(xid), xid)
    meta, versions = _parse_meta(attributes.pop("meta", None), xid), attributes.pop("versions", None)
    navigation = {name: attributes.pop(name) for name in NAVIGATION if name in attributes}
    xid_member = {"xid": navigation["xid"]} if "xid" in navigation else {}
    entries = map_of_objects(versions, "versions", xid)
    meta = options.effective_meta(meta) if meta is not None else None
    pointer = xrefs.requested_xref(resource, meta, options.patch)
    if pointer is not None:
        xrefs.set_xref(
            changes, resource, pointer, attributes | ({} if versions is None else {"versions": versions}), meta
        )
        return
    if resource.xref is not None:
        xrefs.remove_xref(changes, resource)
    targets = _target_versionids(resource, attributes, meta, entries)
    for versionid, entry in pop_entries(changes, entries):
        write_version(changes, resource, versionid, entry, options)
    for target in targets:
        write_version(changes, resource, target, {**attributes, **xid_member}, options, document)
    if meta is not None:
        write_meta(changes, resource, meta, options)


def write_version(
    changes: ChangeSet,
    resource: ResourceDraft,
    versionid: str | None,
    body: Mapping[str, Json],
    options: WriteOptions,
    document: bytes | None = None,
) -> VersionDraft:
    """Creates or updates one Version. versionid: None: the one in the body, otherwise the server chooses.

    Raises: UnknownAttribute for members nested in a Resource, which would be lost here (ENT-17); any Problem of a
    write.
    """
    attributes = dict(body)
    body_versionid = attributes.pop("versionid", None)
    requested_versionid = versionid if versionid is not None else body_versionid
    draft = changes.version(
        resource,
        check_version_id(requested_versionid)
        if requested_versionid is not None
        else next_version_id(changes, resource),
    )
    take_id({"versionid": body_versionid}, "version", draft.id, draft.xid)
    take_id(attributes, resource.type.singular, xids.entity_id(resource.xid), draft.xid)
    if draft.is_new and not draft.is_written:
        add_version(resource, draft, requested_versionid is not None and not options.keepids)
    for name in NESTED:
        if attributes.get(name) is not None:
            raise UnknownAttribute(draft.xid, name=name)
    ancestor = attributes.pop("ancestorid", None)
    is_copy = options.keepids or _is_complete_read(attributes)
    _write_attributes(changes, resource, draft, attributes, options, document)
    _set_ancestor(resource, draft, ancestor)
    if is_copy and draft.keeps_modifiedat and resource.type.versionmode == "modifiedat":
        draft.source_ancestor = ancestor
    return draft


def write_meta(changes: ChangeSet, resource: ResourceDraft, body: Mapping[str, Json], options: WriteOptions) -> None:
    """Writes the relevant part of a meta. Its request for a default Version waits until the Resource is completed."""
    attributes = dict(body)
    take_id(attributes, resource.type.singular, xids.entity_id(resource.xid), resource.meta.xid)
    attributes.pop("xref", None)
    set_readonly(changes, resource, attributes.pop("readonly", None), options.patch)
    resource.default_request = _default_request(resource, attributes, options.patch)
    if options.patch and "defaultversionid" in attributes and "defaultversionsticky" not in attributes:
        attributes["defaultversionsticky"] = (
            resource.default_request.is_sticky or None
        )  # naming a Version makes it sticky (ENT-82)
    attributes.pop("defaultversionid", None)
    resource.meta.write(attributes, patch=options.patch, fixed=resource.meta_ids())
    sticky = bool(resource.meta.attributes.get("defaultversionsticky"))
    resource.default_request = replace(resource.default_request, is_sticky=sticky)
    resource.needs_completion = True


def _parse_meta(meta: Json, xid: str) -> dict[str, Json] | None:
    if meta is not None and not isinstance(meta, dict):
        raise InvalidAttribute(xid, name="meta", error_detail="it has to be an object")
    return meta


def next_version_id(changes: ChangeSet, resource: ResourceDraft) -> str:
    """The next server-assigned version id: 1, 2, 3 ..., skipping those in use; no id is assigned twice (ENT-75)."""
    versions = f"{resource.xid}/versions/"
    used = 0
    while True:
        resource.counter += 1
        versionid = str(resource.counter)
        stored = None if resource.has_all_versions else changes.world.get(versions + versionid)
        if stored is None and versionid not in resource.versions:
            return versionid
        used += 1
        if used & (used - 1) == 0 and not resource.has_all_versions:  # 1, 2, 4 ...: reads as many more together
            changes.world.prefetch(f"{versions}{resource.counter + number}" for number in range(1, used + 1))


def pop_entries(changes: ChangeSet, entries: dict[str, dict[str, Json]]) -> Iterator[tuple[str, dict[str, Json]]]:
    """The entries of a request's map. Each is removed from the map, so that its memory is free after its write."""
    for key in list(entries):
        yield key, entries.pop(key)
        changes.entries.add()


def map_of_objects(value: Json, name: str, xid: str) -> dict[str, dict[str, Json]]:
    """A nested collection of a request; absent and null are empty. Raises: InvalidAttribute, BadRequest (ENT-150)."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidAttribute(xid, name=name, error_detail="it has to be a map of entities")
    for key, entry in value.items():
        if not isinstance(entry, dict):
            raise BadRequest(error_detail=f'the entry "{key}" of "{name}" in "{xid}" has to be an object')
    return value


def _target_versionids(
    resource: ResourceDraft, attributes: dict[str, Json], meta: Json, entries: Mapping[str, Any]
) -> list[str | None]:
    """The Version that the top-level attributes apply to: none or one; None is one whose id the server chooses.

    Rules ENT-90, ENT-91: the top level does not apply to a Version that is also in the map.
    """
    if resource.default_before is not None:
        take_id(attributes, "version", resource.default_before, resource.xid)
        return [] if resource.default_before in entries else [resource.default_before]
    requested_id = attributes.get("versionid")
    if requested_id is None and isinstance(meta, dict):
        requested_id = meta.get("defaultversionid")
    if requested_id is None:
        return [] if entries else [None]
    return [] if check_version_id(requested_id) in entries else [requested_id]


def add_version(resource: ResourceDraft, draft: VersionDraft, is_client_id: bool) -> None:
    """Adds a new Version and marks what it changes (ENT-77, ENT-102). is_client_id: a client chose its id."""
    if is_client_id and not resource.type.setversionid:
        raise VersionidNotAllowed(resource.xid, plural=resource.type.plural)
    check_version_order(resource.type, draft)
    resource.membership_changed = resource.needs_completion = True


def check_version_order(type: ResourceType, draft: VersionDraft) -> None:
    """Raises: InvalidAttribute for an id without a place in the order of its `versionmode` (ENT-102)."""
    if type.versionmode == "semver" and not is_semver(draft.id):
        detail = 'with the versionmode "semver" it has to be a semantic version such as 1.0.0'
        raise InvalidAttribute(draft.xid, name="versionid", error_detail=detail)


def _is_complete_read(attributes: Mapping[str, Json]) -> bool:
    """Whether the attributes were read from a response of another registry: only responses have an `xid`."""
    return "xid" in attributes


def _write_attributes(
    changes: ChangeSet,
    resource: ResourceDraft,
    draft: VersionDraft,
    attributes: dict[str, Json],
    options: WriteOptions,
    document: bytes | None,
) -> None:
    """Writes the attributes and the document of a Version.

    A document write merges: only headers that are present count.
    """
    type = resource.type
    patch = options.patch or document is not None
    stored = draft.before or {}
    url = type.singular + "url"
    document_write = take_document(attributes, type, draft.xid)
    if document is not None and attributes.get(url) is None:
        attributes[url] = None
    if attributes.get("contenttype") is None and document is None:
        stored_contenttype = stored.get("contenttype")
        contenttype = implied_contenttype(
            document_write, type, options.mediatype, stored_contenttype, patch=patch, keepids=options.keepids
        )
        attributes.update({"contenttype": contenttype} if contenttype else {})
    ancestor = draft.ancestorid or draft.id
    fixed = {type.singular + "id": xids.entity_id(resource.xid), "versionid": draft.id, "ancestorid": ancestor}
    previous_createdat = draft.attributes.get("createdat") if draft.before else None
    is_complete_read = _is_complete_read(attributes)
    draft.write(
        options.effective_body(attributes),
        patch=patch,
        fixed=fixed,
        defaults=constraint_defaults(changes, resource),
        is_complete_read=is_complete_read,
    )
    if draft.attributes.get("createdat") != previous_createdat or type.versionmode == "modifiedat":
        resource.needs_completion = True
    draft.ordering_time = draft.attributes["modifiedat"] if type.versionmode == "modifiedat" else None
    if draft.attributes.get(url) is not None:
        draft.document = None
    elif document is not None:
        draft.document = changes.add_document(document)
    elif document_write.attribute is not None:
        draft.document = _store_document(changes, draft, type, document_write.value)


def _store_document(changes: ChangeSet, draft: VersionDraft, type: ResourceType, value: Json) -> str | None:
    """Stores a document that is given as a JSON value or as base64; null is the empty document."""
    if value is None:
        return None
    is_text = isinstance(value, str)
    return changes.add_document(
        encode_document(value, type.document_form(draft.attributes.get("contenttype")) if is_text else "json")
    )


def _set_ancestor(resource: ResourceDraft, draft: VersionDraft, ancestor: Json) -> None:
    """Records a stated `ancestorid`; the computed modes ignore it (ENT-100)."""
    if ancestor is None:
        return
    if not isinstance(ancestor, str):
        raise InvalidAttribute(draft.xid, name="ancestorid", error_detail="it has to be a string")
    if resource.type.versionmode == "manual":
        draft.ancestor = draft.id if ancestor == "request" and draft.is_new else ancestor
        resource.needs_completion = True


def _default_request(resource: ResourceDraft, attributes: Mapping[str, Json], patch: bool) -> DefaultVersionRequest:
    """The request for a default Version by the table of ENT-82. Raises: InvalidAttribute for an id of a wrong type."""
    id, sticky = attributes.get("defaultversionid"), attributes.get("defaultversionsticky")
    if id is not None and not isinstance(id, str):
        raise InvalidAttribute(resource.meta.xid, name="defaultversionid", error_detail="it has to be a string")
    if not patch:
        return DefaultVersionRequest(is_sticky=None, id=id, keeps_current=False)
    if "defaultversionsticky" in attributes:
        return DefaultVersionRequest(is_sticky=bool(sticky), id=id, keeps_current="defaultversionid" not in attributes)
    if "defaultversionid" in attributes:
        return DefaultVersionRequest(is_sticky=id is not None, id=id, keeps_current=False)
    return DefaultVersionRequest()

"""Writes through the legacy APIs: Groups and Versions of definitions, applied with the registry's own write functions.

Rules LEG-205, 206, 208, 303, 402, 406, 502, 531 to 533, 601 to 611, 1202, 1207.
"""

from __future__ import annotations

from typing import Any, Final

from annals.domain.compat.catalog import version_formats
from annals.domain.compat.errors import Conflict
from annals.domain.compat.legacy_apis import FACADE, MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.compat.publications import PublishedVersion
from annals.domain.compat.request_extras import LegacyWrite
from annals.domain.compat.uris import compose_uri, entity_path, normalize_uri
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.changes.drafts import ResourceDraft, VersionDraft
from annals.domain.decisions.commands import WriteTree
from annals.domain.decisions.compat import group_formats
from annals.domain.decisions.compat.imports import IMPORTER, new_importer
from annals.domain.decisions.compat.uri_conflicts import check_uri_path, find_published
from annals.domain.decisions.compat.version_numbers import USED_NUMBERS, next_number
from annals.domain.decisions.rules.ids import check_id
from annals.domain.decisions.rules.readonly import check_writable
from annals.domain.decisions.write_resource import WriteOptions, write_version
from annals.domain.decisions.xrefs import check_no_xref
from annals.domain.registry.entities import Attributes, Entity
from annals.domain.values import xid as xids

#: The Group attributes that a legacy API sets, by their registry names; all others stay unchanged.
_GROUP_ATTRIBUTES: Final = {
    SCHEMAREGISTRY: ("description", "labels", "format"),
    MESSAGECATALOG: ("description", "envelope", "protocol"),
}


def apply_legacy_write(changes: ChangeSet, command: WriteTree) -> None:
    """Applies one WriteTree of a legacy API to a change; the rules complete it at its end.

    Raises: Conflict, InvalidDefinition, NotFound; any Problem of a write.
    """
    assert command.facade is not None, "a legacy API writes"
    check_id(xids.entity_id(command.xid))
    _check_case(changes, command.xid)
    if len(xids.segments(command.xid)) == 2:
        _publish_group(changes, command, command.facade)
    else:
        _publish_version(changes, command, command.facade)


def _check_case(changes: ChangeSet, xid: str) -> None:
    stored = changes.world.get(xid)
    if stored is not None and stored.xid != xid:
        raise Conflict(error_detail=f'ids are unique in any letter case, and "{stored.id}" exists (LEG-402)')


# --- Groups ----------------------------------------------------------------------------------------------------------


def _publish_group(changes: ChangeSet, command: WriteTree, facade: LegacyWrite) -> None:
    """Writes a Group; an unchanged Group is not written (LEG-206)."""
    changes.processed.append(command.xid)
    stored = changes.find(command.xid)
    requested: Attributes = {name: command.tree.get(name) or None for name in _GROUP_ATTRIBUTES[facade.family]}
    if facade.family == SCHEMAREGISTRY:
        requested["format"] = group_formats.optional_registry_format(facade.format)
    new_facade: Attributes = stored.private.get(FACADE, {}) if stored else {}
    if stored is None or group_formats.stored_group_format(facade.family, stored) != facade.format:
        new_facade = {"format": facade.format} if facade.format is not None else {}
    if stored is not None:
        requested = _without_unchanged_format(facade, stored, requested)
        if new_facade == stored.private.get(FACADE, {}) and all(
            stored.attributes.get(name) == requested[name] for name in requested
        ):
            return
    group = changes.group(command.xid, write_implied=False)
    ids = {changes.group_type(command.xid).singular + "id": xids.entity_id(command.xid)}
    group.write(requested if stored else _without_none(requested), patch=stored is not None, fixed=ids)
    group.facade = new_facade


def _without_unchanged_format(facade: LegacyWrite, stored: Entity, requested: Attributes) -> Attributes:
    """The requested attributes, without a format that stays.

    Raises: Conflict if definitions rely on another one (LEG-303).
    """
    if not group_formats.is_same_group_format(
        facade.family, group_formats.stored_group_format(facade.family, stored), facade.format
    ):
        if stored.attributes[f"{facade.family.resources}count"]:
            raise Conflict(error_detail="the format of a group cannot change while the group has members (LEG-303)")
        return requested
    return {name: value for name, value in requested.items() if name in ("description", "labels")}


def _without_none(attributes: Attributes) -> Attributes:
    return {name: value for name, value in attributes.items() if value is not None}


# --- Versions --------------------------------------------------------------------------------------------------------


def _publish_version(changes: ChangeSet, command: WriteTree, facade: LegacyWrite) -> None:
    """Adds a new Version of a definition, which may be new too, or answers with a matching existing Version."""
    group = changes.existing_entity(xids.join(*xids.segments(command.xid)[:2]))
    check_writable(changes, command.xid, frozenset())
    resource = changes.resource(command.xid)
    check_no_xref(resource)
    authority = _check_authority(resource, facade)
    format = group_formats.definition_format(group, resource, facade)
    number = next_number(changes, resource)
    path = entity_path(command.xid, number)
    uri = compose_uri(authority, facade.id, facade.base, path)
    has_own_uri = authority is not None or facade.id is not None
    published = find_published(changes, facade, uri, default=not has_own_uri)
    if published is not None:
        _report_version(changes, _known_version(command, facade, published))
        return
    if facade.id is None and (repeated := _find_repeated(changes, resource, command, facade)):
        _report_version(changes, repeated)
        return
    if has_own_uri:
        check_uri_path(changes, facade, uri, command.xid, number)
    group_formats.check_event_type(group, resource, facade, command.tree, authority)
    version = _write_version(changes, resource, command, format, number)
    version.facade = _version_facade(changes, facade, version, uri if has_own_uri else None)
    resource.facade = _definition_facade(resource, command, facade, authority, format, group)
    if resource.is_new:
        resource.facade |= _without_none({IMPORTER: new_importer(facade, changes.context)})
    _set_readonly_values(resource, version, authority, uri)
    _report_version(changes, PublishedVersion(number, Entity(version.xid, "", 1, {})))


def _report_version(changes: ChangeSet, published: PublishedVersion) -> None:
    changes.processed.append(published.entity.xid)
    changes.number = published.number


def _check_authority(resource: ResourceDraft, facade: LegacyWrite) -> str | None:
    """The current or new authority of a definition. Raises: Conflict if it has another one (LEG-605)."""
    current: str | None = resource.facade.get("authority")
    if resource.is_new or facade.authority is None:
        return current if facade.authority is None else facade.authority
    if normalize_uri(facade.authority) != normalize_uri(current or facade.base):
        raise Conflict(error_detail=f'the authority is "{current or facade.base}" and cannot change (LEG-605)')
    return current


def _known_version(command: WriteTree, facade: LegacyWrite, published: PublishedVersion) -> PublishedVersion:
    """The Version that has the given id, if its content is the same. Raises: Conflict (LEG-533, LEG-606)."""
    if (
        facade.id is not None
        and published.definition == command.xid
        and _document_hash(facade, published.entity) == _request_hash(command)
    ):
        return published
    identifier = "id" if facade.id is not None else 'URI; give this one an "id" of its own'
    # The message does not name the definition, because the caller may have no right to know of it (LEG-1104).
    raise Conflict(error_detail=f"a version with another document or of another name has this {identifier} (LEG-606)")


def _find_repeated(
    changes: ChangeSet, resource: ResourceDraft, command: WriteTree, facade: LegacyWrite
) -> PublishedVersion | None:
    """The latest Version with the same document and media type as the request; schemas only (LEG-531)."""
    if facade.family != SCHEMAREGISTRY:
        return None
    request_hash, contenttype = _request_hash(command), command.tree.get("contenttype")
    repeated = changes.world.publications.by_document(
        resource.xid, request_hash or "", has_retained=USED_NUMBERS in resource.facade
    )
    matches = [found for found in repeated if found.entity.attributes.get("contenttype") == contenttype]
    return max(matches, key=lambda found: found.number, default=None)


def _document_hash(facade: LegacyWrite, image: Entity) -> str | None:
    """SHA-256 of a Version's document; for a message definition, that of the document in its request."""
    if facade.family == SCHEMAREGISTRY:
        return image.document
    document_hash: str | None = image.private.get(FACADE, {}).get("document")
    return document_hash


def _request_hash(command: WriteTree) -> str | None:
    content = command.document if command.document is not None else command.facade and command.facade.content
    return digest(content) if content else None


def _write_version(
    changes: ChangeSet, resource: ResourceDraft, command: WriteTree, format: str | None, number: int
) -> VersionDraft:
    if resource.type.versionmode == "semver":
        raise Conflict(error_detail='the versionmode is "semver", and the id of a new version is a number (LEG-406)')
    resource.counter = number - 1  # the next id that the registry chooses is the number
    tree = (
        dict(command.tree)
        if format is None
        else {**command.tree, "format": group_formats.optional_registry_format(format)}
    )
    version = write_version(changes, resource, None, tree, WriteOptions(False, command.mediatype), command.document)
    assert version.id == str(number)
    version.assigned_number = number
    return version


def _version_facade(changes: ChangeSet, facade: LegacyWrite, version: VersionDraft, uri: str | None) -> dict[str, Any]:
    """The values that only the legacy API knows of a Version. uri: None for the default URI, which is not stored."""
    document = changes.add_document(facade.content) if facade.content else None
    values = {
        "id": facade.id,
        "uri": uri,
        "document": document,
        "contenttype": facade.contenttype,
        "left": dict(facade.leftovers) or None,
    }
    if facade.family == MESSAGECATALOG:
        values[version_formats.FORMAT] = version_formats.recorded_format(facade.format, version.attributes)
    return _without_none(values)


def _definition_facade(
    resource: ResourceDraft,
    command: WriteTree,
    facade: LegacyWrite,
    authority: str | None,
    format: str | None,
    group: Entity,
) -> dict[str, Any]:
    """The values that only the legacy API knows of a definition.

    Its description is that of its first Version (LEG-502).
    """
    first_description = command.tree.get("description") if resource.is_new else None
    # If the group has a format, the format is the group's (LEG-703). A later spelling changes nothing.
    format_spelling = (
        format if resource.is_new and group_formats.stored_group_format(facade.family, group) is None else None
    )
    values = {"authority": authority, "description": facade.description or first_description, "format": format_spelling}
    return {**resource.facade, **_without_none(values)}


def _set_readonly_values(resource: ResourceDraft, version: VersionDraft, authority: str | None, uri: str) -> None:
    """Copies legacy values to the read-only attributes that the model has for them (LEG-1202)."""
    definitions = resource.type.version.definitions
    legacy_values = {"authority": authority, "versionuri": uri}
    names = [name for name in legacy_values if legacy_values[name] and definitions.get(name, {}).get("readonly")]
    version.attributes = {**version.attributes, **{name: legacy_values[name] for name in names}}

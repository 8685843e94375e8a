"""Reads Groups, schemas and message definitions from the read model in the terms of the legacy APIs.

Rules LEG-301, LEG-302, LEG-407, LEG-604, LEG-608, LEG-703, LEG-1203, LEG-1206, LEG-1207.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from annals.domain.compat import formats
from annals.domain.compat.catalog import attributes as catalog
from annals.domain.compat.catalog import groups, version_formats
from annals.domain.compat.ids import encode_segment, to_legacy_id
from annals.domain.compat.legacy_apis import FACADE, SCHEMAREGISTRY, LegacyApi
from annals.domain.decisions.compat import group_formats
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps, loads_trusted
from annals.projections.compat.versions import CompatVersion, CompatVersions
from annals.projections.entities.rows import EntityRow, EntityTimes, own_times
from annals.projections.entities.view import View

_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class CompatDefinition:
    """One Version of a schema or message definition, with everything that a response shows of it.

    group, child: decoded ids. format: in the clients' spelling. definition_description, times, epoch: of the schema or
    definition. createdat: of the Version. content, contenttype: the document and its media type. remote_url: URL of a
    document that is not stored here. None for values that are not set.
    """

    family: LegacyApi
    group: str
    child: str
    version: CompatVersion
    format: str | None
    authority: str | None
    definition_description: str | None
    description: str | None
    times: EntityTimes
    createdat: str
    epoch: int
    content: bytes
    contenttype: str | None
    remote_url: str | None = None

    @property
    def etag(self) -> bytes:
        """A strong entity tag, from the bytes and from the epochs of the Version and of its schema or definition."""
        digest = sha256(self.content).hexdigest()[:16]
        return f'"{digest}.{self.version.row.epoch}.{self.epoch}"'.encode()


def member_ids(view: View, collection: str) -> list[str]:
    """The ids of a collection's members as paths spell them, sorted by code point (LEG-203)."""
    rows = view.subtree(collection, (xids.type_of(collection),))
    return sorted(encode_segment(to_legacy_id(row.id)) for row in rows)


def group_object(row: EntityRow, family: LegacyApi) -> dict[str, Any]:
    """A Group as the API's clients see it, with exactly the attributes that are set (LEG-301)."""
    attributes = loads_trusted(row.attributes)
    times = own_times(row.type, attributes)
    members = {
        "id": encode_segment(to_legacy_id(row.id)),
        "format": group_format(row, family),
        "description": attributes.get("description"),
        "createdtimeutc": times.createdat,
        "updatedtimeutc": times.modifiedat,
        "groupProperties": attributes.get("labels") if family is SCHEMAREGISTRY else None,
    }
    return {name: value for name, value in members.items() if value is not None}


def group_format(row: EntityRow, family: LegacyApi) -> str | None:
    """The format of a Group in the clients' spelling; None if it has none."""
    return group_formats.displayed_group_format(family, loads_trusted(row.attributes), facade_of(row))


def facade_of(row: EntityRow) -> Mapping[str, Any]:
    """The members of an entity that only the legacy APIs know."""
    facade: Mapping[str, Any] = loads_trusted(row.private).get(FACADE, {})
    return facade


def read_definition(
    view: View, family: LegacyApi, xid: str, compat_version: CompatVersion, root: str
) -> CompatDefinition | None:
    """One Version as a response shows it; None when its Resource or Group does not exist.

    xid: of the Resource. root: URL of the registry. Raises: MissingDocument.
    """
    resource, group = view.resolved_entity(xid), view.entity(xids.join(*xids.segments(xid)[:2]))
    if resource is None or group is None:
        return None
    version_attributes, facade = loads_trusted(compat_version.row.attributes), facade_of(resource)
    format = _effective_format(family, group, facade, compat_version, version_attributes)
    content, contenttype = _document_content(view, family, format, compat_version, version_attributes, root)
    groupid, id = (to_legacy_id(part) for part in xids.segments(xid)[1:4:2])
    return CompatDefinition(
        family=family,
        group=groupid,
        child=id,
        version=compat_version,
        format=format,
        authority=facade.get("authority"),
        definition_description=facade["description"]
        if "description" in facade
        else _latest_description(view, xid, compat_version, version_attributes),
        description=version_attributes.get("description"),
        times=resource.times,
        createdat=own_times(compat_version.row.type, version_attributes).createdat,
        epoch=resource.epoch,
        content=content,
        contenttype=contenttype,
        remote_url=version_attributes.get("schemaurl") if family is SCHEMAREGISTRY else None,
    )


def version_by_uri(view: View, family: LegacyApi, uri: str, roots: tuple[str, ...]) -> CompatVersion | None:
    """The Version that a URI refers to; None if there is none. roots: URLs of the registry."""
    return CompatVersions(view).by_uri(family, uri, [*roots, *(root + family.base for root in roots)])


def schema_by_uri(
    view: View, uri: str, roots: tuple[str, ...], may_read: Callable[[str], bool]
) -> catalog.SchemaReference | None:
    """The schema of this registry, or its Version, that a URI refers to.

    may_read: whether the caller may read the entity with an xid.
    """
    compat_version = version_by_uri(view, SCHEMAREGISTRY, uri, roots)
    row = compat_version.row if compat_version is not None else _schema_by_path(view, uri, roots)
    format = loads_trusted(row.attributes).get("format") if row is not None and may_read(row.xid) else None
    return catalog.SchemaReference(row.xid, format) if row is not None and format else None


def _schema_by_path(view: View, uri: str, roots: tuple[str, ...]) -> EntityRow | None:
    """The schema whose xid equals the URI, or the URI's part after the registry's root."""
    root = next((root for root in roots if uri.startswith(f"{root}/")), "")
    xid = uri.removeprefix(root)
    return view.entity(xid) if xids.type_of(xid) == SCHEMAREGISTRY.type and xid.count("/") == 4 else None


def _latest_description(
    view: View, xid: str, compat_version: CompatVersion, version_attributes: Mapping[str, Any]
) -> str | None:
    """The description of a schema or definition that has none of its own: its latest Version's (§ 12)."""
    latest = CompatVersions(view).latest(xid)
    if latest is None or latest.number == compat_version.number:
        return version_attributes.get("description")
    description: str | None = loads_trusted(latest.row.attributes).get("description")
    return description


def _effective_format(
    family: LegacyApi,
    group: EntityRow,
    facade: Mapping[str, Any],
    compat_version: CompatVersion,
    version_attributes: Mapping[str, Any],
) -> str | None:
    """The format in force, in the client's spelling if a client set it (LEG-701, LEG-703)."""
    format_of_group, actual_format = group_format(group, family), version_attributes.get("format")
    if family is not SCHEMAREGISTRY:
        return version_formats.version_format(
            version_attributes, compat_version.facade, format_of_group or groups.XREGISTRY_FORMAT
        )
    if not actual_format:
        return format_of_group
    return formats.displayed_format(actual_format, facade.get("format"), format_of_group)


def _document_content(
    view: View,
    family: LegacyApi,
    format: str | None,
    compat_version: CompatVersion,
    version_attributes: Mapping[str, Any],
    root: str,
) -> tuple[bytes, str | None]:
    """The bytes of a document and its media type. Raises: MissingDocument."""
    if family is SCHEMAREGISTRY:
        digest = compat_version.row.document
        return view.document(digest) if digest else b"", version_attributes.get("contenttype")
    digest = compat_version.facade.get("document")
    if digest is not None:
        return view.document(digest), compat_version.facade.get("contenttype")
    uri = version_attributes.get("dataschemauri")
    # The registry accepts references relative to its root, but the catalog requires URIs.
    absolute_reference = {"dataschemauri": root + uri} if uri is not None and uri.startswith("/") else {}
    return dumps(
        catalog.to_document(
            format or groups.XREGISTRY_FORMAT,
            {**version_attributes, **absolute_reference},
            compat_version.facade.get("left", {}),
        )
    ), _JSON

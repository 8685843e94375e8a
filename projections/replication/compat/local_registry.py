"""This registry as links over a legacy API read and change it, with one command for each change (LEG-910)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple

from annals.commands.store.write_transaction import Recorded
from annals.domain.compat.catalog.attributes import SchemaReference
from annals.domain.compat.document_attributes import DocumentAttributes
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi
from annals.domain.compat.request_extras import LegacyDeletion
from annals.domain.compat.uris import normalize_uri
from annals.domain.decisions.commands import Command, DeleteEntities
from annals.domain.decisions.compat.request_commands import group_command, message_command, schema_command
from annals.domain.replication import LINK
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.compat.definitions import (
    CompatDefinition,
    facade_of,
    group_format,
    group_object,
    read_definition,
    schema_by_uri,
    version_by_uri,
)
from annals.projections.compat.versions import CompatVersion, CompatVersions
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.replication.compat import client
from annals.projections.replication.link_worker import LinkWorkerContext

FAMILY_BY_DIALECT: Final[Mapping[str, LegacyApi]] = {family.name: family for family in (SCHEMAREGISTRY, MESSAGECATALOG)}


class KnownVersion(NamedTuple):
    """A Version found by its URI. definition: xid of its Resource."""

    definition: str
    content: bytes


class LegacyLocalRegistry:
    """Reads and writes this registry for one link. base: URL of this registry's own API of the link's family."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self.link = link
        self.family: Final = FAMILY_BY_DIALECT[link.dialect]
        self._context = context
        self._root_url = context.root
        self.base = self._root_url + self.family.base

    # --- reading -----------------------------------------------------------------------------------------------------

    @contextmanager
    def view(self) -> Iterator[View]:
        """A consistent view of the registry."""
        with self._context.readers.view() as view:
            yield view

    def entity(self, xid: str) -> EntityRow | None:
        """The entity at an xid."""
        return self._context.readers.quick_view().entity(xid)

    def came_over_link(self, row: EntityRow) -> bool:
        """Whether a Group or a definition came over this link."""
        return bool(loads_trusted(row.private).get(LINK) == self.link.id)

    def came_over_link_at(self, xid: str) -> bool:
        """Whether the entity at an xid came over this link."""
        row = self.entity(xid)
        return row is not None and self.came_over_link(row)

    def members(self, group: str) -> list[EntityRow]:
        """The definitions in a Group."""
        with self.view() as view:
            return list(view.subtree(f"{group}/{self.family.resources}", (self.family.type,)))

    def copies(self) -> list[EntityRow]:
        """The Groups and definitions that came over this link, in tree order."""
        with self.view() as view:
            rows = view.subtree(f"/{self.family.groups}", (self.family.groups, self.family.type))
            return [row for row in rows if self.came_over_link(row)]

    def format(self, group: EntityRow) -> str | None:
        """The format of a Group."""
        return group_format(group, self.family)

    def authority(self, row: EntityRow) -> str:
        """The authority of a definition."""
        authority_url: str = facade_of(row).get("authority") or self.base
        return authority_url

    def is_own(self, authority: str) -> bool:
        """Whether an authority is this registry, whose own objects always take precedence (LEG-906)."""
        return normalize_uri(authority).rstrip("/") == normalize_uri(self.base)

    def has_uri(self, uri: str) -> bool:
        """Whether a Version with a URI exists."""
        return version_by_uri(self._context.readers.quick_view(), self.family, uri, (self._root_url,)) is not None

    def version_by_uri(self, uri: str) -> KnownVersion | None:
        """The Version with a URI."""
        with self.view() as view:
            compat_version = version_by_uri(view, self.family, uri, (self._root_url,))
            definition = self._read_definition(view, compat_version) if compat_version is not None else None
            return (
                KnownVersion(definition_of(definition.version.row.xid), definition.content)
                if definition is not None
                else None
            )

    def versions(self, xid: str) -> list[CompatVersion]:
        """The Versions of a definition, by ascending number."""
        with self.view() as view:
            return CompatVersions(view).versions(xid)

    def all_in_scope(self) -> list[str]:
        """The xids of the Groups and definitions in scope, in tree order."""
        scope = self.link.scope
        with self.view() as view:
            rows = view.subtree(f"/{self.family.groups}", (self.family.groups, self.family.type))
            return [row.xid for row in rows if scope.has(row.xid)]

    def group_body(self, group: EntityRow) -> dict[str, Any]:
        """The request body that would create a Group."""
        return comparable_group(group_object(group, self.family))

    def legacy_version(self, compat_version: CompatVersion) -> client.LegacyVersion | None:
        """A Version in the form in which it is sent; None if its document is stored elsewhere."""
        with self.view() as view:
            definition = self._read_definition(view, compat_version)
        if definition is None or definition.remote_url is not None:
            return None
        return client.LegacyVersion(
            uri=compat_version.uri,
            authority=definition.authority or self.base,
            path="",
            attributes=DocumentAttributes(definition.description, definition.definition_description, definition.format),
            content=definition.content,
            contenttype=definition.contenttype,
            etag="",
        )

    def document_hash(self, compat_version: CompatVersion) -> str:
        """SHA-256 of a Version's document, including one that is built from attributes."""
        stored_digest = compat_version.row.document or compat_version.facade.get("document")
        if stored_digest or self.family is SCHEMAREGISTRY:
            return str(stored_digest or "")
        published_version = self.legacy_version(compat_version)
        return sha256(published_version.content or b"").hexdigest() if published_version else ""

    def _read_definition(self, view: View, compat_version: CompatVersion) -> CompatDefinition | None:
        return read_definition(view, self.family, definition_of(compat_version.row.xid), compat_version, self._root_url)

    # --- writing -----------------------------------------------------------------------------------------------------

    def put_group(self, xid: str, body: Mapping[str, Any]) -> None:
        """Writes a Group from a body of the legacy API; does nothing if it is equal. Raises: Problem."""
        self._execute(group_command(self.family, xid, self.base, comparable_group(body)))

    def add_version(self, xid: str, version: client.LegacyVersion) -> None:
        """Adds a Version to a definition, under its URI (LEG-903, LEG-904). Raises: Problem."""
        attributes = replace(version.attributes, authority=version.authority, id=version.uri)
        content = version.content or b""
        if self.family is SCHEMAREGISTRY:
            self._execute(schema_command(xid, self.base, attributes, content, version.contenttype))
            return
        group = self.entity(xids.join(*xids.segments(xid)[:2]))
        format = (self.format(group) if group is not None else None) or ""
        self._execute(
            message_command(xid, self.base, attributes, content, version.contenttype, format, self._find_schema)
        )

    def remove(self, xid: str, number: int | None = None) -> None:
        """Deletes a Group or a definition, or one Version by its number. Raises: Problem."""
        path = xid if number is None else f"{xid}/versions"
        self._execute(DeleteEntities(path, facade=LegacyDeletion(self.family, number)))

    def _find_schema(self, uri: str) -> SchemaReference | None:
        return schema_by_uri(self._context.readers.quick_view(), uri, (self._root_url,), lambda xid: True)

    def _execute(self, command: Command) -> Recorded:
        return self._context.execute(self.link, command)


def comparable_group(body: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a Group, without its name and what each registry sets itself."""
    return {name: body[name] for name in ("format", "description", "groupProperties") if body.get(name) is not None}


def definition_of(xid: str) -> str:
    """The xid of a Version's Resource."""
    return xids.resource_of(xid)

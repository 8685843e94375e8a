"""Entity rows as JSON: API view, or document view with `doc`.

Rows arrive in tree order and are rendered in one pass: the renderer cuts an entity's members from its stored text and
inserts nested collections before the closing brace. It holds only the current row and the next one, plus the Versions
of one Resource if a filter may have removed the default Version.
Spec: core 1.0-rc4, "Design: JSON Serialization", "Doc Flag", "Registry Collections".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from annals.api.xregistry.render.documents import ReadDocument, row_document_member
from annals.api.xregistry.render.inlined_splices import InlinedSplices
from annals.api.xregistry.render.json_members import MemberTexts, join_members, parse_string, split_members
from annals.api.xregistry.render.render_options import VALIDATION_ATTRIBUTES, RenderOptions, self_suffix
from annals.api.xregistry.render.shortself import shortself_url
from annals.api.xregistry.request.inline import CONFIGURATION_NAMES, NO_INLINE, InlineTree
from annals.domain.model import GroupType, ResourceType
from annals.domain.values import xid as xids
from annals.projections.entities.rows import EntityRow

CHUNK_SIZE: Final = 1 << 20
#: Characters in each part of a body: below the size at which the allocator asks the system for memory each time.
PART_SIZE: Final = 1 << 16


class PeekableRows:
    """Rows, with a look ahead at the next one."""

    def __init__(self, rows: Iterable[EntityRow]) -> None:
        self._rows = iter(rows)
        self._buffer: deque[EntityRow] = deque()
        self.head: EntityRow | None = next(self._rows, None)

    def next_row(self) -> EntityRow:
        """The next row. There has to be one."""
        row = self.head
        assert row is not None, "more is shown than was found"
        self.head = self._buffer.popleft() if self._buffer else next(self._rows, None)
        return row

    def take_members(self, parent: str, type: str) -> Iterator[EntityRow]:
        """The next rows, while they are members of one collection."""
        while self.head is not None and self.head.type == type and self.head.parent == parent:
            yield self.next_row()

    def has_member(self, id: str | None, parent: str, type: str) -> bool:
        """Whether an id is among the next members of a collection. Holds these rows until they are taken."""
        collection_rows = list(self.take_members(parent, type))
        self._buffer.extendleft(reversed([*collection_rows, *filter(None, (self.head,))]))
        self.head = self._buffer.popleft() if self._buffer else None
        return any(row.id == id for row in collection_rows)


RenderEntity = Callable[[EntityRow], Iterator[str]]
GroupTypes = Mapping[str, GroupType]


class Renderer:
    """Renders entities as pieces of JSON text. rows: the nested rows, in tree order."""

    def __init__(self, options: RenderOptions, documents: ReadDocument, rows: PeekableRows) -> None:
        self._options = options
        self._documents = documents
        self._rows = rows

    @cached_property
    def _splices(self) -> InlinedSplices:
        return InlinedSplices(self._options, self._documents)

    def registry(
        self, row: EntityRow, types: GroupTypes, inline: InlineTree, configuration: Mapping[str, str]
    ) -> Iterator[str]:
        """The registry. configuration: JSON text of the inlined ones of `capabilities`, `model` and `modelsource`."""
        members = split_members(row.attributes)
        groups = list(self.groups(row, members, types, inline))
        leading_members = {"specversion": members.pop("specversion"), "registryid": members.pop("registryid")}
        rendered_members = {**self._identity_members(leading_members, row), **members, **configuration}
        yield "{" + join_members(rendered_members)
        for group in groups:
            yield from group
        yield "}"

    def groups(
        self, row: EntityRow, members: MemberTexts, types: GroupTypes, inline: InlineTree
    ) -> Iterator[Iterator[str]]:
        """The registry's collections, each with a leading comma. Removes their counts from `members` at once."""
        for plural, type in types.items():
            count = members.pop(f"{plural}count", "0")
            entity = self.group_renderer(type, inline.get(plural, NO_INLINE))
            yield self._collection_members(row, plural, count, inline.get(plural), entity)

    def group(self, row: EntityRow, type: GroupType, inline: InlineTree) -> Iterator[str]:
        members = split_members(row.attributes)
        resources = list(self.resources(row, members, type, inline))
        yield "{" + join_members(
            self._identity_members(_take_ids(members, {f"{type.singular}id": row.id}), row, members)
        )
        for resource in resources:
            yield from resource
        yield "}"

    def resources(
        self, row: EntityRow, members: MemberTexts, type: GroupType, inline: InlineTree
    ) -> Iterator[Iterator[str]]:
        """A Group's collections, each with a leading comma, in tree order.

        Removes their counts from `members` at once.
        """
        for plural in sorted(type.resources):
            count = members.pop(f"{plural}count", "0")
            entity = self.resource_renderer(type.resources[plural], inline.get(plural, NO_INLINE))
            yield self._collection_members(row, plural, count, inline.get(plural), entity)

    def resource(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> Iterator[str]:
        spliced_text = self._spliced_resource(row, type, inline)
        if spliced_text:
            yield spliced_text
            return
        opening = self._splices.resource(row, type, inline)
        if opening is None and self._is_bare(row):
            yield "{" + join_members(self.pointer_members(row, type, inline)) + "}"
            return
        text, count = opening or self._resource_opening(row, type, inline)
        yield text
        versions_inline = inline.get("versions")
        entity = self.version_renderer(type, versions_inline or NO_INLINE)
        yield from self._collection_members(row, "versions", count, versions_inline, entity)
        yield "}"

    def _spliced_resource(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> str | None:
        """The Resource from its stored text with URLs inserted; None if it needs more than URLs."""
        if self._options.needs_full_render or inline or not row.meta:
            return None
        return "".join(self._options.resource_splice(type)(row.xid, row.id, row.attributes, row.meta))

    def _resource_opening(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> tuple[str, str]:
        """See `InlinedSplices.resource`."""
        members = self.resource_members(row, type, inline)
        count = members.pop("versionscount", "0")
        return "{" + join_members(members), count

    def resource_members(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> MemberTexts:
        """A Resource's members up to `versionscount`, which is last. Its Versions are left out."""
        members = split_members(row.attributes)
        meta, count = members.pop("meta"), members.pop("versionscount", "0")
        ids = _take_ids(members, {f"{type.singular}id": row.id})
        if self._options.doc:
            rendered_members = self._identity_members(ids, row)
        else:
            ids["versionid"] = members.pop("versionid")
            rendered_members = self._identity_members(ids, row, members, self_suffix(type))
            self._add_document(rendered_members, row, type, inline)
        rendered_members["metaurl"] = self._options.reference(f"{row.xid}/meta", is_included="meta" in inline)
        if "meta" in inline:
            rendered_members["meta"] = (
                "{" + join_members(self._meta_members(row, type, meta, "versions" in inline)) + "}"
            )
        rendered_members["versionscount"] = count
        return rendered_members

    def pointer_members(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> MemberTexts:
        """The members of a Resource with `xref` that shows nothing of its target."""
        rendered_members = self._identity_members(
            _take_ids({}, {f"{type.singular}id": row.id}), row, suffix=self_suffix(type)
        )
        rendered_members["metaurl"] = self._options.reference(f"{row.xid}/meta", is_included="meta" in inline)
        if "meta" in inline:
            rendered_members["meta"] = (
                "{"
                + join_members(
                    self._meta_members(row, type, split_members(row.attributes)["meta"], includes_versions=False)
                )
                + "}"
            )
        return rendered_members

    def _is_bare(self, row: EntityRow) -> bool:
        """Whether a Resource with `xref` shows only its ids: it has no target, or this is a document view."""
        return (
            '"xref":' in row.attributes
            and "xref" in split_members(split_members(row.attributes)["meta"])
            and (self._options.doc or "versionid" not in split_members(row.attributes))
        )

    def meta(self, row: EntityRow, type: ResourceType) -> Iterator[str]:
        """The meta of a Resource, alone. row: the Resource's."""
        yield (
            "{"
            + join_members(
                self._meta_members(row, type, split_members(row.attributes)["meta"], includes_versions=False)
            )
            + "}"
        )

    def version(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> Iterator[str]:
        yield (
            self._spliced_version(row, type, inline)
            or self._splices.version(row, type, inline)
            or "{" + join_members(self.version_members(row, type, inline)) + "}"
        )

    def _spliced_version(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> str | None:
        """The Version from its stored text with URLs inserted; None if it needs more than URLs."""
        if self._options.doc or self._options.has_shortself or inline:
            return None
        return "".join(self._options.version_splice(type)(row.xid, row.id, row.attributes, row.meta))

    def version_members(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> MemberTexts:
        """All members of a Version."""
        members = split_members(row.attributes)
        if self._options.doc:
            for name in VALIDATION_ATTRIBUTES:
                members.pop(name, None)
        ids = _take_ids(members, {f"{type.singular}id": xids.segments(row.xid)[3], "versionid": row.id})
        rendered_members = self._identity_members(ids, row, members, self_suffix(type))
        self._add_document(rendered_members, row, type, inline)
        return rendered_members

    def render_map(self, parent: str, type: str, entity: RenderEntity) -> Iterator[str]:
        """A collection as a JSON object. It takes the next rows while they are members of the collection."""
        separator = "{"
        for row in self._rows.take_members(parent, type):
            yield f'{separator}"{row.id}":'
            yield from entity(row)
            separator = ","
        yield "}" if separator == "," else "{}"

    def group_renderer(self, type: GroupType, inline: InlineTree) -> RenderEntity:
        """The function that renders members of a Group collection."""
        return lambda row: self.group(row, type, inline)

    def resource_renderer(self, type: ResourceType, inline: InlineTree) -> RenderEntity:
        """The function that renders members of a Resource collection."""
        return lambda row: self.resource(row, type, inline)

    def version_renderer(self, type: ResourceType, inline: InlineTree) -> RenderEntity:
        """The function that renders members of a Version collection."""
        return lambda row: self.version(row, type, inline)

    def _collection_members(
        self, row: EntityRow, plural: str, count: str, nested_inline: InlineTree | None, entity: RenderEntity
    ) -> Iterator[str]:
        xid, query = f"{row.xid.rstrip('/')}/{plural}", ""
        if self._options.filter_effects:
            count, query = self._options.filter_effects.count_and_query(row, plural, count)
        url = self._options.reference(xid, query, is_included=nested_inline is not None)
        yield f',"{plural}url":{url},"{plural}count":{count}'
        if nested_inline is not None:
            yield f',"{plural}":'
            yield from self.render_map(row.xid, xids.type_of(xid), entity)

    def _meta_members(self, row: EntityRow, type: ResourceType, text: str, includes_versions: bool) -> MemberTexts:
        """The members of a meta. includes_versions: whether the response includes the Resource's Versions."""
        members = split_members(text)
        if self._options.doc and "xref" in members:
            members = {"xref": members["xref"]}
        ids = _take_ids(members, {f"{type.singular}id": row.id})
        default = parse_string(members.get("defaultversionid"))
        rendered_members = self._identity_members(ids, row, subpath="/meta")
        for name, value in members.items():
            rendered_members[name] = value
            if name == "defaultversionid":
                xid = f"{row.xid}/versions/{default}"
                is_included = includes_versions and self._has_version(row, default)
                rendered_members["defaultversionurl"] = self._options.reference(xid, self_suffix(type), is_included)
        return rendered_members

    def _has_version(self, row: EntityRow, versionid: str | None) -> bool:
        """Whether a response that includes a Resource's Versions has this one: a filter may remove it."""
        is_filtered = self._options.doc and self._options.filter_effects is not None
        return not is_filtered or self._rows.has_member(versionid, row.xid, f"{row.type}.versions")

    def _identity_members(
        self, ids: MemberTexts, row: EntityRow, members: Mapping[str, str] = {}, suffix: str = "", subpath: str = ""
    ) -> MemberTexts:
        """The members of an entity, or of its part at `subpath`, with its URLs and, in a response, its xid."""
        xid = row.xid + subpath
        shortself_member = (
            {"shortself": f'"{shortself_url(self._options.base, row, subpath)}"'} if self._options.has_shortself else {}
        )
        xid_member = {} if self._options.stated else {"xid": f'"{xid}"'}
        return {**ids, "self": self._options.reference(xid, suffix), **shortself_member, **xid_member, **members}

    def _add_document(self, members: MemberTexts, row: EntityRow, type: ResourceType, inline: InlineTree) -> None:
        if type.singular in inline and type.hasdocument and f"{type.singular}url" not in members:
            contenttype = parse_string(members.get("contenttype"))
            name, value = row_document_member(row, type, contenttype, self._documents, self._options.binary)
            members[name] = value


def encode_chunks(pieces: Iterable[str], size: int = CHUNK_SIZE) -> Iterator[bytes]:
    """The pieces as UTF-8, in chunks of about `size` characters."""
    pending: list[str] = []
    length = 0
    for piece in pieces:
        pending.append(piece)
        length += len(piece)
        if length >= size:
            yield "".join(pending).encode()
            pending, length = [], 0
    yield "".join(pending).encode()


def configuration_texts(inline: InlineTree, model: EntityRow | None, capabilities: EntityRow | None) -> dict[str, str]:
    """The JSON text of each inlined part of the configuration."""
    texts = {
        **split_members(model.attributes if model else ""),
        "capabilities": capabilities.attributes if capabilities else "{}",
    }
    return {name: texts.get(name, "{}") for name in CONFIGURATION_NAMES if name in inline}


def _take_ids(members: MemberTexts, ids: Mapping[str, str]) -> MemberTexts:
    """The ids as JSON text; also removes them from the other members."""
    for name in ids:
        members.pop(name, None)
    return {name: f'"{id}"' for name, id in ids.items()}

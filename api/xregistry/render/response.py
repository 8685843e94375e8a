"""Response content, and its rendering as JSON or as a document.

Reads and writes both use it, so the response to a write equals the response to a GET.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from annals.api.http.asof import asof_suffix, with_asof
from annals.api.http.browsers.stored_content import SANDBOX_POLICY, location_headers
from annals.api.http.problem_response import root_link
from annals.api.http.response import JSON, NO_HEADERS, Headers, Response
from annals.api.registry.definitions import RegistryDefinitions
from annals.api.registry.header_attributes import HeaderCodec, contenttype_headers
from annals.api.xregistry.render.documents import ReadDocument
from annals.api.xregistry.render.entities import PeekableRows, RenderEntity, Renderer
from annals.api.xregistry.render.filter_effects import FilterEffects
from annals.api.xregistry.render.json_members import parse_string, split_members
from annals.api.xregistry.render.render_options import RenderOptions
from annals.api.xregistry.render.shortself import shortself_url
from annals.api.xregistry.render.splices import StoredTexts, splice_versions
from annals.api.xregistry.request.flags import Flags
from annals.api.xregistry.request.inline import NO_INLINE, InlineTree
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind, RequestTarget
from annals.domain.model import ResourceType
from annals.domain.values import xid as xids
from annals.domain.values.header_values import encode
from annals.domain.values.json_text import Json, loads_trusted
from annals.projections.entities.rows import EntityRow


@dataclass(frozen=True, slots=True)
class ResponseContent:
    """The content of one response, before it is rendered.

    rows: in response order; for a single entity its own row first. configuration: JSON text of the inlined parts of the
    registry's configuration. is_map_of_collections: the body is a map of collections, as for a POST to an entity.
    created_xids: xids that the request created. filter_effects: effects of a filter on collections. links: to other
    pages. texts: stored texts of a collection's members, instead of `rows`, if the members need only URLs.
    """

    target: RequestTarget
    definitions: RegistryDefinitions
    flags: Flags
    inline: InlineTree
    rows: Iterable[EntityRow]
    configuration: Mapping[str, str] = field(default_factory=dict)
    is_map_of_collections: bool = False
    created_xids: tuple[str, ...] = ()
    filter_effects: FilterEffects | None = None
    links: Headers = field(default_factory=list)
    texts: StoredTexts | None = None

    @property
    def is_document(self) -> bool:
        """True if the body is a document. With `doc`, a request for a document shows metadata instead."""
        return self.target.has_document_body and not self.flags.doc

    @property
    def is_new(self) -> bool:
        """True if the request created the single entity of this response; a meta is created with its Resource."""
        return (
            self.target.kind in _CREATABLE
            and not self.is_map_of_collections
            and self.target.row_xid in self.created_xids
        )

    def location_header(self, base_url: str) -> tuple[bytes, bytes]:
        """The Location header of a new entity: its `self`, in the form that this response has."""
        suffix = details_suffix(self.target) if self.target.kind in _KINDS_WITH_LOCATION else ""
        return b"location", f"{base_url}{self.target.xid}{suffix}".encode()

    def render_options(self, base_url: str) -> RenderOptions:
        """How this response renders URLs and entities."""
        xid = self.target.xid
        root = "" if self.target.kind in _ROOTS else xid
        return RenderOptions(
            base_url,
            self.flags.doc,
            root,
            self.flags.binary,
            self.filter_effects,
            self.has_shortself,
            self.asof_suffix,
            self.flags.stated,
        )

    @property
    def asof_suffix(self) -> str:
        """The suffix that keeps the response's URLs in the same past; empty for the present."""
        return asof_suffix(self.flags.asof)

    @property
    def has_shortself(self) -> bool:
        """Whether entities show their short URLs. A document view never does."""
        return self.definitions.capabilities.shortself and not self.flags.doc


_ROOTS: Final = (PathKind.REGISTRY, PathKind.EXPORT)
_KINDS_WITH_LOCATION: Final = (PathKind.RESOURCE, PathKind.VERSION)
_CREATABLE: Final = (PathKind.GROUP, PathKind.RESOURCE, PathKind.META, PathKind.VERSION)


#: The ids at the start of a Resource's attributes; ids need no escapes in JSON.
_LEADING_IDS: Final = re.compile(r'\{"\w+":"[^"]+","versionid":"([^"]+)"')


def render_json(response_content: ResponseContent, base_url: str, documents: ReadDocument) -> Iterator[str]:
    """The JSON text of the content."""
    rows = PeekableRows(response_content.rows)
    renderer = Renderer(response_content.render_options(base_url), documents, rows)
    if response_content.is_map_of_collections:
        return _render_maps(renderer, rows, response_content)
    if response_content.texts is not None:
        return _spliced_collection(response_content, response_content.texts, base_url)
    if response_content.target.kind in COLLECTION_KINDS:
        parent = xids.parent(f"{response_content.target.xid}/-") or xids.REGISTRY
        return renderer.render_map(
            parent, xids.type_of(response_content.target.xid), _entity_renderer(renderer, response_content)
        )
    if response_content.flags.collections:
        return _render_collections(renderer, rows.next_row(), response_content)
    return _entity_renderer(renderer, response_content)(rows.next_row())


def _spliced_collection(response_content: ResponseContent, texts: StoredTexts, base_url: str) -> Iterator[str]:
    """A whole collection of Resources or Versions, from their stored texts."""
    options, type, xid = (
        response_content.render_options(base_url),
        _resource_type(response_content.target),
        response_content.target.xid,
    )
    if response_content.target.kind is PathKind.RESOURCES:
        return options.splice_collection(type, xid, texts)
    start = f'{{"{type.singular}id":"{xids.segments(xid)[3]}","versionid":"'
    return splice_versions(texts, options.version_splice(type), xid, len(start))


def document_response(
    response_content: ResponseContent, base_url: str, documents: ReadDocument, extra_headers: Headers = NO_HEADERS
) -> Response:
    """The document of a Resource's default Version, or of a Version, with its metadata in headers.

    A document that is stored elsewhere gives a redirect, without the headers in `extra_headers`.
    """
    row = next(iter(response_content.rows))
    types = response_content.definitions.header_codec(_resource_type(response_content.target))
    metadata = _document_metadata(
        types,
        response_content.target.kind is PathKind.RESOURCE,
        row,
        base_url,
        response_content.has_shortself,
        response_content.asof_suffix,
    )
    headers = _filtered_headers(metadata.headers, response_content, row)
    if response_content.created_xids and metadata.versionid:
        headers = [_content_location(response_content, base_url, row.xid, metadata.versionid), *headers[1:]]
    if metadata.remote_url is not None:
        return Response(303, [root_link(base_url), *headers, *location_headers(metadata.remote_url)])
    document = documents(row.document) if row.document else b""
    return Response(200, [root_link(base_url), SANDBOX_POLICY, *headers, *extra_headers], document, is_document=True)


class _DocumentMetadata(NamedTuple):
    """A document's metadata headers, with the location of its Version first. versionid: empty if there is no Version.

    remote_url: URL of a document that is not stored here.
    """

    headers: Headers
    versionid: str
    remote_url: str | None


@lru_cache(maxsize=2048)
def _document_metadata(
    types: HeaderCodec, is_resource: bool, row: EntityRow, base_url: str, has_shortself: bool, asof: str
) -> _DocumentMetadata:
    """The headers of a document. They depend on the row only, so those of frequently read documents are cached.

    is_resource: whether the row is a Resource's, which shows its default Version. has_shortself: whether to include the
    short URL. asof: suffix of its other URLs.
    """
    attributes = _header_attributes(row, types.type, base_url, is_resource, has_shortself, asof)
    document_url, versionid = attributes.get(f"{types.type.singular}url"), attributes.get("versionid", "")
    version_path = f"{row.xid}/versions/{versionid}" if is_resource else row.xid
    content_location_headers = [(b"content-location", f"{base_url}{version_path}{asof}".encode())] if versionid else []
    return _DocumentMetadata(
        [
            *content_location_headers,
            *contenttype_headers(attributes),
            *types.encode(attributes),
            (b"content-disposition", _disposition(_resource_id(row))),
        ],
        versionid,
        None if document_url is None else str(document_url),
    )


def _disposition(resource_id: bytes) -> bytes:
    """The id, as the specification has it: an unknown disposition, so that browsers save the document.

    They would show one whose id is the only disposition that does not save.
    """
    return b"attachment" if resource_id.lower() == b"inline" else resource_id


def _header_attributes(
    row: EntityRow, type: ResourceType, base_url: str, is_resource: bool, has_shortself: bool, asof: str
) -> dict[str, Json]:
    """The attributes that headers show, in the order of a JSON response."""
    attributes: dict[str, Json] = loads_trusted(row.attributes)
    ids = {name: attributes.pop(name) for name in (f"{type.singular}id", "versionid") if name in attributes}
    url = base_url + row.xid
    urls = {"self": url + asof, **({"shortself": shortself_url(base_url, row)} if has_shortself else {})}
    header_attributes = {**ids, **urls, "xid": row.xid, **attributes}
    if is_resource:
        del header_attributes["meta"]
        count = header_attributes.pop("versionscount", None)
        header_attributes["metaurl"] = f"{url}/meta{asof}"
        if count is not None:
            header_attributes |= {"versionsurl": f"{url}/versions{asof}", "versionscount": count}
    return header_attributes


def _filtered_headers(headers: Headers, response_content: ResponseContent, row: EntityRow) -> Headers:
    """The headers, with the count and the URL of the Versions that a filter leaves."""
    if response_content.filter_effects is None or response_content.target.kind is not PathKind.RESOURCE:
        return headers
    header_values = dict(headers)
    count, query = response_content.filter_effects.count_and_query(
        row, "versions", header_values.get(_COUNT_HEADER, b"0").decode()
    )
    url = header_values.get(_URL_HEADER, b"").decode().removesuffix(encode(response_content.asof_suffix))
    changed_headers = {
        _COUNT_HEADER: count.encode(),
        _URL_HEADER: with_asof(url + query, encode(response_content.asof_suffix)).encode(),
    }
    return [(name, changed_headers.get(name, value)) for name, value in headers]


_COUNT_HEADER: Final = b"xregistry-versionscount"
_URL_HEADER: Final = b"xregistry-versionsurl"


def json_response(
    response_content: ResponseContent, base_url: str, documents: ReadDocument, extra_headers: Headers = NO_HEADERS
) -> Response:
    """The complete JSON response, for small content or content in memory.

    response_content: its `rows` are a sequence.
    """
    headers = [*json_headers(response_content, base_url), *extra_headers]
    return Response(200, headers, "".join(render_json(response_content, base_url, documents)).encode())


def json_headers(response_content: ResponseContent, base_url: str, row: EntityRow | None = None) -> Headers:
    """The headers of a JSON response. row: the entity's, if the rows must not be read yet."""
    content_location_headers: Headers = []
    if response_content.target.kind in _KINDS_WITH_LOCATION:
        row = row or next(iter(response_content.rows))
        version = _default_versionid(row) if response_content.target.kind is PathKind.RESOURCE else row.id
        if version:
            content_location_headers.append(_content_location(response_content, base_url, row.xid, version))
    return [JSON, root_link(base_url), *content_location_headers, *response_content.links]


def _default_versionid(row: EntityRow) -> str | None:
    """The id of a Resource's default Version; None for an xref without a target."""
    match = _LEADING_IDS.match(row.attributes)
    return match[1] if match else parse_string(split_members(row.attributes).get("versionid"))


def _content_location(
    response_content: ResponseContent, base_url: str, xid: str, versionid: str
) -> tuple[bytes, bytes]:
    """The URL of the Version whose attributes are shown, or that the request created, in the form of the request."""
    if response_content.target.kind is PathKind.RESOURCE:
        created_xids = [
            created_xid for created_xid in response_content.created_xids if created_xid.startswith(f"{xid}/versions/")
        ]
        xid = f"{xid}/versions/{versionid}"
        xid = xid if xid in created_xids or not created_xids else created_xids[-1]
    return (
        b"content-location",
        f"{base_url}{xid}{details_suffix(response_content.target)}{response_content.asof_suffix}".encode(),
    )


def details_suffix(target: RequestTarget) -> str:
    """`$details` if the URLs of this response's entity have it."""
    return "$details" if _resource_type(target).hasdocument and not target.has_document_body else ""


def _entity_renderer(renderer: Renderer, response_content: ResponseContent) -> RenderEntity:
    """The function that renders one entity of the response."""
    return _RENDERERS[response_content.target.kind](renderer, response_content)


def _resource_type(target: RequestTarget) -> ResourceType:
    assert target.resource is not None, "only Resources, their meta and Versions come here"
    return target.resource


def _resource_id(row: EntityRow) -> bytes:
    return xids.segments(row.xid)[3].encode()


def _registry_renderer(renderer: Renderer, response_content: ResponseContent) -> RenderEntity:
    types = response_content.definitions.model.groups
    return lambda row: renderer.registry(row, types, response_content.inline, response_content.configuration)


def _group_renderer(renderer: Renderer, response_content: ResponseContent) -> RenderEntity:
    type = response_content.target.group
    assert type is not None, "a Group has a type"
    return renderer.group_renderer(type, response_content.inline)


def _stored_renderer(name: str | None) -> Callable[[Renderer, ResponseContent], RenderEntity]:
    """Renders a row's stored text, or one member of it."""
    return lambda renderer, shown: lambda row: iter([split_members(row.attributes)[name] if name else row.attributes])


_RENDERERS: Final[dict[PathKind, Callable[[Renderer, ResponseContent], RenderEntity]]] = {
    **dict.fromkeys((PathKind.REGISTRY, PathKind.EXPORT), _registry_renderer),
    **dict.fromkeys((PathKind.GROUPS, PathKind.GROUP), _group_renderer),
    **dict.fromkeys(
        (PathKind.RESOURCES, PathKind.RESOURCE),
        lambda renderer, shown: renderer.resource_renderer(_resource_type(shown.target), shown.inline),
    ),
    **dict.fromkeys(
        (PathKind.VERSIONS, PathKind.VERSION),
        lambda renderer, shown: renderer.version_renderer(_resource_type(shown.target), shown.inline),
    ),
    PathKind.META: lambda renderer, shown: lambda row: renderer.meta(row, _resource_type(shown.target)),
    PathKind.CAPABILITIES: _stored_renderer(None),
    PathKind.MODEL: _stored_renderer("model"),
    PathKind.MODELSOURCE: _stored_renderer("modelsource"),
}


def _render_maps(renderer: Renderer, rows: PeekableRows, response_content: ResponseContent) -> Iterator[str]:
    """A map of the collections that the rows belong to."""
    separator = "{"
    while rows.head is not None:
        first_type = rows.head.type
        plural = first_type.rpartition(".")[2]
        yield f'{separator}"{plural}":'
        yield from renderer.render_map(
            response_content.target.xid, first_type, _member_renderer(renderer, response_content, plural)
        )
        separator = ","
    yield "}" if separator == "," else "{}"


def _member_renderer(renderer: Renderer, response_content: ResponseContent, plural: str) -> RenderEntity:
    """The function that renders members of one of an entity's collections."""
    inline, group = response_content.inline.get(plural, NO_INLINE), response_content.target.group
    if group is None:
        return renderer.group_renderer(response_content.definitions.model.groups[plural], inline)
    return renderer.resource_renderer(group.resources[plural], inline)


def _render_collections(renderer: Renderer, row: EntityRow, response_content: ResponseContent) -> Iterator[str]:
    """The nested collections of an entity, without its attributes."""
    members, group, inline = split_members(row.attributes), response_content.target.group, response_content.inline
    types = response_content.definitions.model.groups
    nested_collections = (
        renderer.resources(row, members, group, inline) if group else renderer.groups(row, members, types, inline)
    )
    separator = "{"
    for pieces in nested_collections:
        yield separator + next(pieces).removeprefix(",")
        yield from pieces
        separator = ","
    yield "}" if separator == "," else "{}"

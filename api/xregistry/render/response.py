"""Response content, and its rendering as JSON or as a document.

Reads and writes both use it, so the response to a write equals the response to a GET.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from api.http.asof import asof_suffix, with_asof
from api.http.browsers.stored_content import SANDBOX_POLICY, location_headers
from api.http.problem_response import root_link
from api.http.response import JSON, NO_HEADERS, Headers, Response
from api.registry.definitions import RegistryDefinitions
from api.registry.header_attributes import HeaderCodec, contenttype_headers
from api.xregistry.render.documents import ReadDocument
from api.xregistry.render.entities import PeekableRows, RenderEntity, Renderer, RenderOptions
from api.xregistry.render.filter_effects import FilterEffects
from api.xregistry.render.json_members import parse_string, split_members
from api.xregistry.render.shortself import shortself_url
from api.xregistry.render.splices import StoredTexts, splice_versions
from api.xregistry.request.flags import Flags
from api.xregistry.request.inline import NO_INLINE, InlineTree
from api.xregistry.request.paths import COLLECTION_KINDS, PathKind, RequestTarget
from domain.model import ResourceType
from domain.values import xid as xids
from domain.values.header_values import encode
from domain.values.json_text import Json, loads_trusted
from projections.entities.rows import EntityRow


@dataclass(frozen=True, slots=True)
class ResponseContent:
    """The content of one response, before it is rendered.

    rows: in response order; for a single entity its own row first. configuration: JSON text of the inlined parts of the
    registry's configuration. maps: the body is a map of collections, as for a POST to an entity. created: xids that the
    request created. narrowing: effects of a filter on collections. links: to other pages. texts: stored texts of a
    collection's members, instead of `rows`, if the members need only URLs.
    """

    target: RequestTarget
    definitions: RegistryDefinitions
    flags: Flags
    inline: InlineTree
    rows: Iterable[EntityRow]
    configuration: Mapping[str, str] = field(default_factory=dict)
    maps: bool = False
    created: tuple[str, ...] = ()
    narrowing: FilterEffects | None = None
    links: Headers = field(default_factory=list)
    texts: StoredTexts | None = None

    @property
    def is_document(self) -> bool:
        """True if the body is a document. With `doc`, a request for a document shows metadata instead."""
        return self.target.has_document_body and not self.flags.doc

    @property
    def is_new(self) -> bool:
        """True if the request created the single entity of this response; a meta is created with its Resource."""
        return self.target.kind in _CREATABLE and not self.maps and self.target.row_xid in self.created

    def location_header(self, base: str) -> tuple[bytes, bytes]:
        """The Location header of a new entity: its `self`, in the form that this response has."""
        suffix = details_suffix(self.target) if self.target.kind in _LOCATED else ""
        return b"location", f"{base}{self.target.xid}{suffix}".encode()

    def render_options(self, base: str) -> RenderOptions:
        """How this response renders URLs and entities."""
        xid = self.target.xid
        root = "" if self.target.kind in _ROOTS else xid
        return RenderOptions(
            base,
            self.flags.doc,
            root,
            self.flags.binary,
            self.narrowing,
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
_LOCATED: Final = (PathKind.RESOURCE, PathKind.VERSION)
_CREATABLE: Final = (PathKind.GROUP, PathKind.RESOURCE, PathKind.META, PathKind.VERSION)


def render_json(shown: ResponseContent, base: str, documents: ReadDocument) -> Iterator[str]:
    """The JSON text of the content."""
    rows = PeekableRows(shown.rows)
    renderer = Renderer(shown.render_options(base), documents, rows)
    if shown.maps:
        return _maps(renderer, rows, shown)
    if shown.texts is not None:
        return _spliced_collection(shown, shown.texts, base)
    if shown.target.kind in COLLECTION_KINDS:
        parent = xids.parent(f"{shown.target.xid}/-") or xids.REGISTRY
        return renderer.map_of(parent, xids.type_of(shown.target.xid), _entity(renderer, shown))
    if shown.flags.collections:
        return _collections_only(renderer, rows.next_row(), shown)
    return _entity(renderer, shown)(rows.next_row())


def _spliced_collection(shown: ResponseContent, texts: StoredTexts, base: str) -> Iterator[str]:
    """A whole collection of Resources or Versions, from their stored texts."""
    look, type, xid = shown.render_options(base), _resource(shown.target), shown.target.xid
    if shown.target.kind is PathKind.RESOURCES:
        return look.all_resources(type, xid, texts)
    start = f'{{"{type.singular}id":"{xids.segments(xid)[3]}","versionid":"'
    return splice_versions(texts, look.versions(type), xid, len(start))


def document_response(
    shown: ResponseContent, base: str, documents: ReadDocument, also: Headers = NO_HEADERS
) -> Response:
    """The document of a Resource's default Version, or of a Version, with its metadata in headers.

    A document that is stored elsewhere gives a redirect, without the headers in `also`.
    """
    row = next(iter(shown.rows))
    types = shown.definitions.header_codec(_resource(shown.target))
    found = _document_metadata(
        types, shown.target.kind is PathKind.RESOURCE, row, base, shown.has_shortself, shown.asof_suffix
    )
    headers = _filtered_headers(found.headers, shown, row)
    if shown.created and found.versionid:
        headers = [_content_location(shown, base, row.xid, found.versionid), *headers[1:]]
    if found.elsewhere is not None:
        return Response(303, [root_link(base), *headers, *location_headers(found.elsewhere)])
    document = documents(row.document) if row.document else b""
    return Response(200, [root_link(base), SANDBOX_POLICY, *headers, *also], document, is_document=True)


class _DocumentMetadata(NamedTuple):
    """A document's metadata headers, with the location of its Version first. versionid: empty if there is no Version.

    elsewhere: URL of a document that is not stored here.
    """

    headers: Headers
    versionid: str
    elsewhere: str | None


@lru_cache(maxsize=2048)
def _document_metadata(
    types: HeaderCodec, resource: bool, row: EntityRow, base: str, short: bool, asof: str
) -> _DocumentMetadata:
    """The headers of a document. They depend on the row only, so those of frequently read documents are cached.

    resource: whether the row is a Resource's, which shows its default Version. short: whether to include the short URL.
    asof: suffix of its other URLs.
    """
    own = _header_attributes(row, types.type, base, resource, short, asof)
    elsewhere, versionid = own.get(f"{types.type.singular}url"), own.get("versionid", "")
    place = f"{row.xid}/versions/{versionid}" if resource else row.xid
    located = [(b"content-location", f"{base}{place}{asof}".encode())] if versionid else []
    return _DocumentMetadata(
        [*located, *contenttype_headers(own), *types.encode(own), (b"content-disposition", _name(row))],
        versionid,
        None if elsewhere is None else str(elsewhere),
    )


def _header_attributes(
    row: EntityRow, type: ResourceType, base: str, resource: bool, short: bool, asof: str
) -> dict[str, Json]:
    """The attributes that headers show, in the order of a JSON response."""
    own: dict[str, Json] = loads_trusted(row.attributes)
    ids = {name: own.pop(name) for name in (f"{type.singular}id", "versionid") if name in own}
    url = base + row.xid
    urls = {"self": url + asof, **({"shortself": shortself_url(base, row)} if short else {})}
    shown = {**ids, **urls, "xid": row.xid, **own}
    if resource:
        del shown["meta"]
        count = shown.pop("versionscount", None)
        shown["metaurl"] = f"{url}/meta{asof}"
        if count is not None:
            shown |= {"versionsurl": f"{url}/versions{asof}", "versionscount": count}
    return shown


def _filtered_headers(headers: Headers, shown: ResponseContent, row: EntityRow) -> Headers:
    """The headers, with the count and the URL of the Versions that a filter leaves."""
    if shown.narrowing is None or shown.target.kind is not PathKind.RESOURCE:
        return headers
    given = dict(headers)
    count, asked = shown.narrowing.count_and_query(row, "versions", given.get(_COUNT, b"0").decode())
    url = given.get(_URL, b"").decode().removesuffix(encode(shown.asof_suffix))
    changed = {_COUNT: count.encode(), _URL: with_asof(url + asked, encode(shown.asof_suffix)).encode()}
    return [(name, changed.get(name, value)) for name, value in headers]


_COUNT: Final = b"xregistry-versionscount"
_URL: Final = b"xregistry-versionsurl"


def json_response(shown: ResponseContent, base: str, documents: ReadDocument, also: Headers = NO_HEADERS) -> Response:
    """The complete JSON response, for small content or content in memory.

    shown.rows: a sequence. also: more headers.
    """
    headers = [*json_headers(shown, base), *also]
    return Response(200, headers, "".join(render_json(shown, base, documents)).encode())


def json_headers(shown: ResponseContent, base: str, row: EntityRow | None = None) -> Headers:
    """The headers of a JSON response. row: the entity's, if the rows must not be read yet."""
    located: Headers = []
    if shown.target.kind in _LOCATED:
        row = row or next(iter(shown.rows))
        version = (
            parse_string(split_members(row.attributes).get("versionid"))
            if shown.target.kind is PathKind.RESOURCE
            else row.id
        )
        if version:
            located.append(_content_location(shown, base, row.xid, version))
    return [JSON, root_link(base), *located, *shown.links]


def _content_location(shown: ResponseContent, base: str, xid: str, versionid: str) -> tuple[bytes, bytes]:
    """The URL of the Version whose attributes are shown, or that the request created, in the form of the request."""
    if shown.target.kind is PathKind.RESOURCE:
        made = [one for one in shown.created if one.startswith(f"{xid}/versions/")]
        xid = f"{xid}/versions/{versionid}"
        xid = xid if xid in made or not made else made[-1]
    return b"content-location", f"{base}{xid}{details_suffix(shown.target)}{shown.asof_suffix}".encode()


def details_suffix(target: RequestTarget) -> str:
    """`$details` if the URLs of this response's entity have it."""
    return "$details" if _resource(target).hasdocument and not target.has_document_body else ""


def _entity(renderer: Renderer, shown: ResponseContent) -> RenderEntity:
    """The function that renders one entity of the response."""
    return _ENTITIES[shown.target.kind](renderer, shown)


def _resource(target: RequestTarget) -> ResourceType:
    assert target.resource is not None, "only Resources, their meta and Versions come here"
    return target.resource


def _name(row: EntityRow) -> bytes:
    return xids.segments(row.xid)[3].encode()


def _registry(renderer: Renderer, shown: ResponseContent) -> RenderEntity:
    types = shown.definitions.model.groups
    return lambda row: renderer.registry(row, types, shown.inline, shown.configuration)


def _group(renderer: Renderer, shown: ResponseContent) -> RenderEntity:
    type = shown.target.group
    assert type is not None, "a Group has a type"
    return renderer.group_of(type, shown.inline)


def _stored(name: str | None) -> Callable[[Renderer, ResponseContent], RenderEntity]:
    """Renders a row's stored text, or one member of it."""
    return lambda renderer, shown: lambda row: iter([split_members(row.attributes)[name] if name else row.attributes])


_ENTITIES: Final[dict[PathKind, Callable[[Renderer, ResponseContent], RenderEntity]]] = {
    **dict.fromkeys((PathKind.REGISTRY, PathKind.EXPORT), _registry),
    **dict.fromkeys((PathKind.GROUPS, PathKind.GROUP), _group),
    **dict.fromkeys(
        (PathKind.RESOURCES, PathKind.RESOURCE),
        lambda renderer, shown: renderer.resource_of(_resource(shown.target), shown.inline),
    ),
    **dict.fromkeys(
        (PathKind.VERSIONS, PathKind.VERSION),
        lambda renderer, shown: renderer.version_of(_resource(shown.target), shown.inline),
    ),
    PathKind.META: lambda renderer, shown: lambda row: renderer.meta(row, _resource(shown.target)),
    PathKind.CAPABILITIES: _stored(None),
    PathKind.MODEL: _stored("model"),
    PathKind.MODELSOURCE: _stored("modelsource"),
}


def _maps(renderer: Renderer, rows: PeekableRows, shown: ResponseContent) -> Iterator[str]:
    """A map of the collections that the rows belong to."""
    before = "{"
    while rows.next is not None:
        first = rows.next.type
        plural = first.rpartition(".")[2]
        yield f'{before}"{plural}":'
        yield from renderer.map_of(shown.target.xid, first, _member(renderer, shown, plural))
        before = ","
    yield "}" if before == "," else "{}"


def _member(renderer: Renderer, shown: ResponseContent, plural: str) -> RenderEntity:
    """The function that renders members of one of an entity's collections."""
    inline, group = shown.inline.get(plural, NO_INLINE), shown.target.group
    if group is None:
        return renderer.group_of(shown.definitions.model.groups[plural], inline)
    return renderer.resource_of(group.resources[plural], inline)


def _collections_only(renderer: Renderer, row: EntityRow, shown: ResponseContent) -> Iterator[str]:
    """The nested collections of an entity, without its attributes."""
    own, group, inline = split_members(row.attributes), shown.target.group, shown.inline
    types = shown.definitions.model.groups
    nested = renderer.resources(row, own, group, inline) if group else renderer.groups(row, own, types, inline)
    before = "{"
    for pieces in nested:
        yield before + next(pieces).removeprefix(",")
        yield from pieces
        before = ","
    yield "}" if before == "," else "{}"

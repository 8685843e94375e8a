"""GET requests, answered from the read model."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from annals.api.http import conditional
from annals.api.http.limits import limit_rows
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import JSON, NO_HEADERS, Response
from annals.api.http.streaming import StreamingPool
from annals.api.registry.definitions import DefinitionsCache, OutdatedDefinitions, RegistryDefinitions
from annals.api.registry.entity_lookups import EntityLookups
from annals.api.xregistry.listing import cursor_of, filter_of, list_collection, types_with_xref
from annals.api.xregistry.render.entities import CHUNK_SIZE, PART_SIZE, configuration_texts, encode_chunks
from annals.api.xregistry.render.explicit_values import without_defaults
from annals.api.xregistry.render.filter_effects import FilterEffects
from annals.api.xregistry.render.json_members import join_members, split_members
from annals.api.xregistry.render.response import (
    ResponseContent,
    document_response,
    json_headers,
    json_response,
    render_json,
)
from annals.api.xregistry.request.flags import NO_FLAGS, requested_asof
from annals.api.xregistry.request.inline import CONFIGURATION_NAMES, NO_INLINE, InlineTree, inlined_types
from annals.api.xregistry.request.parsed_request import ParsedRequest, parse_request
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind, RequestTarget
from annals.api.xregistry.snapshots import Snapshot, Snapshots
from annals.domain.decisions.capabilities import offered_capabilities
from annals.domain.errors import problems
from annals.domain.model import Model
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps
from annals.projections.entities.document_batches import DocumentBatches
from annals.projections.entities.found_entities import FoundEntity
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import ListSubtree, View
from annals.projections.entities.view_pool import ViewPool
from annals.projections.entities.visibility import EVERYTHING
from annals.projections.entities.xref import without_resolved, xref_of
from annals.projections.log.answer_position import note_position


class XRegistryReadHandler:
    """Handles GET requests: single entities in the event loop, trees and collections from a snapshot in a thread."""

    def __init__(
        self,
        readers: ViewPool,
        lookups: EntityLookups,
        definitions_cache: DefinitionsCache,
        snapshots: Snapshots,
        streaming_pool: StreamingPool,
        pagelimit: int = 0,
        max_inlined: int = 0,
    ) -> None:
        """A limit of 0 means no limit. pagelimit: members of a page. max_inlined: inlined entities in a response."""
        self._max_inlined = max_inlined
        self._readers = readers
        self._snapshots = snapshots
        self._pagelimit = pagelimit
        self._definitions_cache = definitions_cache
        self._streaming_pool = streaming_pool
        self._lookups = lookups

    async def answer(self, request: Request) -> Response:
        """The response to a GET. Raises: Problem."""
        if request.query and (asof := requested_asof(request.query)) is not None:
            return await self._answer_as_of(request, asof)
        if request.query and await self._snapshots.are_needed_for_page(request):
            return await self._stream(request)
        definitions = self._definitions_cache.definitions
        while True:
            try:
                response = await self._answer_from_current_row(request, definitions)
                return response or await self._stream(
                    request, full_collection=await self._stored_collection(request, definitions)
                )
            except (OutdatedDefinitions, problems.Problem):
                view = self._readers.quick_view()
                current_definitions = await self._readers.read(self._definitions_cache.current, view)
                if current_definitions is definitions:
                    raise
                definitions = current_definitions

    async def offered_capabilities(self, request: Request) -> Response:
        """The capabilities that this server can offer.

        They depend on the program only; with `asof`, the past capabilities decide whether this path was available.
        Raises: Problem.
        """
        asof = requested_asof(request.query)
        snapshot = await self._snapshot(request, asof) if asof is not None else None
        definitions = snapshot.definitions if snapshot else await self._readers.read(self._latest_definitions)
        parse_request(request, definitions)
        response = Response(200, [JSON, root_link(request.base)], dumps(offered_capabilities()))
        return snapshot.add_headers(response, request) if snapshot else response

    def _latest_definitions(self) -> RegistryDefinitions:
        return self._definitions_cache.current(self._readers.latest_view())

    async def _answer_as_of(self, request: Request, asof: str) -> Response:
        """The response as of a moment. Raises: Problem."""
        snapshot = await self._snapshot(request, asof)
        tag = conditional.log_tag(snapshot.position, request, snapshot.definitions.positions)
        try:
            # A filter on a Resource may have to read many Versions, so it does not run in the event loop.
            run = asyncio.to_thread if b"filter" in request.query else self._readers.read
            if response := await run(self._answer_from_row, request, snapshot.definitions, snapshot):
                conditional.check_conditions(request, tag)
                response = conditional.add_entity_tag(response, tag)
            return snapshot.add_headers(response or await self._stream(request, snapshot), request)
        except conditional.NotModified as not_modified:
            return snapshot.add_headers(conditional.not_modified_response(request, not_modified), request)

    async def _snapshot(self, request: Request, asof: str) -> Snapshot:
        """The snapshot that a request names. Raises: BadRequest; NotFound if the registry did not exist then."""
        snapshot = await self._snapshots.find(asof)
        if snapshot.position == 0:
            raise problems.NotFound(request.path)
        return snapshot

    async def _answer_from_current_row(self, request: Request, definitions: RegistryDefinitions) -> Response | None:
        """The response if a single row is enough, otherwise None. Raises: OutdatedDefinitions, Problem."""
        parsed = parse_request(request, definitions)
        if not _needs_one_row(parsed) or _shows_visible_only(parsed):
            return None
        lookup = await self._lookups.find(parsed.target.row_xid, parsed.has_document_body)
        note_position(lookup.position)
        view = self._readers.quick_view()
        if parsed.flags.filter is not None and xref_of(lookup.row):
            # The filter may have to read all Versions of the target, so it does not run in the event loop.
            return await asyncio.to_thread(self._answer_from_lookup, view, parsed, lookup)
        if lookup.row is None or xref_of(lookup.row) or parsed.flags.filter is not None:
            return await self._readers.read(self._answer_from_lookup, view, parsed, lookup)
        return self._answer_from_lookup(view, parsed, lookup)

    def _answer_from_row(
        self, request: Request, definitions: RegistryDefinitions, snapshot: Snapshot
    ) -> Response | None:
        """The same about the past, without an entity tag. Raises: OutdatedDefinitions, Problem."""
        parsed = parse_request(request, definitions)
        if not _needs_one_row(parsed) or _shows_visible_only(parsed):
            return None
        view = snapshot.view(self._readers.quick_view())
        lookup = view.look_up(parsed.target.row_xid, parsed.has_document_body)
        return self._answer_from_lookup(view, parsed, lookup, is_past=True)

    def _answer_from_lookup(
        self, view: View, parsed: ParsedRequest, lookup: FoundEntity, is_past: bool = False
    ) -> Response | None:
        """The same, once the row is found. view: read only for an absent row, an xref or a filter."""
        request, target, flags, definitions = parsed
        row, positions, _, content = lookup
        if positions != definitions.positions:
            raise OutdatedDefinitions
        if row is None or xref_of(row):
            return self._answer_from_xref(view, parsed)
        if flags.filter is not None:
            return self._filtered_document(view, parsed, row)
        tag = None if is_past else conditional.row_tag(row, request, definitions.positions)
        conditional.check_conditions(request, tag)
        response_content = ResponseContent(target, definitions, flags, NO_INLINE, (row,))
        render_response = document_response if parsed.has_document_body else json_response
        return render_response(
            response_content, request.base, lambda _: content, conditional.tag_headers(tag) if tag else NO_HEADERS
        )

    def _answer_from_xref(self, view: View, parsed: ParsedRequest) -> Response | None:
        """The document of a Resource with `xref`, or of one of its Versions; None if the request is not for a document.

        Raises: NotFound if the entity does not exist, with the `xref` resolved or not; CannotDocXref.
        """
        row = _load_row(view, parsed)
        if row is None:
            raise problems.NotFound(parsed.target.xid)
        return self._filtered_document(view, parsed, row) if parsed.has_document_body else None

    def _filtered_document(self, view: View, parsed: ParsedRequest, row: EntityRow) -> Response:
        """A document whose entity passes a filter.

        It has no entity tag, because other entities affect the result too.
        """
        request, target, flags, definitions = parsed
        filter_effects = filter_entity(view, parsed, row)
        response_content = ResponseContent(target, definitions, flags, NO_INLINE, (row,), filter_effects=filter_effects)
        return document_response(response_content, request.base, view.document)

    @contextmanager
    def _open_content(
        self, request: Request, snapshot: Snapshot | None, full_collection: ResponseContent | None
    ) -> Iterator[tuple[ResponseContent, EntityRow | None, int, View | None]]:
        """The content of a response, the row of its entity, its log position, and its view unless it has no rows."""
        if full_collection:
            with self._readers.stream_collection(
                full_collection.target.xid, full_collection.definitions.positions
            ) as listing:
                if listing:
                    note_position(listing.position)
                    yield replace(full_collection, texts=listing.texts), None, listing.position, None
                    return
        with self._readers.view() as current_view:
            view = (snapshot.view(current_view) if snapshot else current_view).seen_by(request.caller, request.path)
            page_definitions = self._snapshots.page_definitions(request, view)
            definitions = (
                snapshot.definitions if snapshot else page_definitions or self._definitions_cache.current(view)
            )
            parsed = parse_request(request, definitions)
            yield *_load_response_content(view, parsed, self._pagelimit), view.position(), view

    async def _stored_collection(self, request: Request, definitions: RegistryDefinitions) -> ResponseContent | None:
        """The content of a full collection of Resources or Versions that stored texts can render; otherwise None.

        Also None for a HEAD request, which would abort the database cursor. Raises: Problem, NotModified.
        """
        _, target, flags, _ = parsed = parse_request(request, definitions)
        page_limit = self._pagelimit if definitions.capabilities.pagination else 0
        full_collection = ResponseContent(target, definitions, flags, NO_INLINE, ())
        if (
            target.kind not in _STORED_COLLECTION_KINDS
            or flags != NO_FLAGS
            or page_limit
            or full_collection.has_shortself
            or request.method == "HEAD"
        ):
            return None
        if conditional.is_conditional(request):
            await self._readers.read(self._check_list_conditions, parsed)
        return full_collection

    def _check_list_conditions(self, parsed: ParsedRequest) -> None:
        """Raises: Problem, NotModified. Without an owner, the list itself says so."""
        request, target, _, definitions = parsed
        view = self._readers.quick_view()
        if view.entity(_owner_xid(target)):
            note_position(position := view.position())
            conditional.check_conditions(request, conditional.log_tag(position, request, definitions.positions))

    async def _stream(
        self, request: Request, snapshot: Snapshot | None = None, full_collection: ResponseContent | None = None
    ) -> Response:
        def job() -> Generator[Any, None, None]:
            with self._open_content(request, snapshot, full_collection) as (
                response_content,
                row,
                position,
                view,
            ):
                tag = conditional.log_tag(position, request, response_content.definitions.positions)
                conditional.check_conditions(request, tag)
                if self._max_inlined and response_content.inline:
                    response_content = replace(
                        response_content, rows=limit_rows(response_content.rows, self._max_inlined)
                    )
                pieces = _render_pieces(response_content, request.base, view)
                headers = [*json_headers(response_content, request.base, row), *conditional.tag_headers(tag)]
                # Sent together with the head, because each switch from a thread to the event loop costs as much as
                # fifty rows.
                chunks, all_sent = _first_chunks(pieces) if request.method != "HEAD" else ((), False)
                yield headers, chunks, all_sent
                yield from () if all_sent else encode_chunks(pieces)

        (headers, first_chunks, is_complete), body = await self._streaming_pool.start(job)
        if is_complete:
            await body.aclose()
            return Response(200, headers, first_chunks[-1], first_chunks=first_chunks[:-1])
        return Response(200, headers, body, first_chunks=first_chunks)


def _needs_one_row(parsed: ParsedRequest) -> bool:
    """Whether the response can be made from the row of the target. Raises: Problem for an invalid `inline`."""
    flags = parsed.flags
    if flags.inline is not None:
        parsed.inline()
    if parsed.target.kind in COLLECTION_KINDS:
        return False
    return parsed.has_document_body or (flags.inline is None and flags.filter is None)


def _shows_visible_only(parsed: ParsedRequest) -> bool:
    """Whether the row of the target has numbers of entities that the caller does not see."""
    return parsed.target.row_xid == xids.REGISTRY and not parsed.request.caller.sees_everything


def _load_response_content(
    view: View, parsed: ParsedRequest, pagelimit: int
) -> tuple[ResponseContent, EntityRow | None]:
    """The content of a GET response, and the row of its entity; None as row for a collection. Raises: Problem."""
    _, target, flags, definitions = parsed
    inline = parsed.inline()
    row = _load_row(view, parsed)
    if row is None:
        raise problems.NotFound(target.xid)
    if row.xid == xids.REGISTRY:
        row = with_visible_counts(view, row, definitions.model)
    if target.kind in COLLECTION_KINDS:
        return _collection_content(view, parsed, inline, row, pagelimit), None
    texts = inlined_configuration(view, inline) if target.kind in (PathKind.REGISTRY, PathKind.EXPORT) else {}
    filter_effects = filter_entity(view, parsed, row)
    nested_rows = inlined_rows(subtree_lister(view, parsed), row, inline, definitions, filter_effects)
    rows: Iterator[EntityRow] = chain((row,), without_resolved(nested_rows) if flags.doc else nested_rows)
    if flags.stated:
        rows = without_defaults(rows)
    return ResponseContent(target, definitions, flags, inline, rows, texts, filter_effects=filter_effects), row


def _load_row(view: View, parsed: ParsedRequest) -> EntityRow | None:
    """The row that has to exist, with its `xref` resolved: a collection's owner, or `RequestTarget.row_xid`.

    Raises: CannotDocXref for Versions of a Resource with `xref` in a document view.
    """
    target = parsed.target
    row = view.resolved_entity(_owner_xid(target))
    if row is None and target.kind in COLLECTION_KINDS and (cursor := cursor_of(parsed, view.position())) is not None:
        row = view.as_of(cursor.position).resolved_entity(_owner_xid(target))  # it may be gone since the first page
    if parsed.flags.doc and row is not None and target.kind in (PathKind.VERSIONS, PathKind.VERSION):
        resource = xids.resource_of(target.xid)
        if xref_of(view.entity(resource)):
            raise problems.CannotDocXref(resource)
    return row


def with_visible_counts(view: View, row: EntityRow, model: Model) -> EntityRow:
    """The registry with the numbers of Groups that the caller sees (ACC-72)."""
    if view.visibility == EVERYTHING:
        return row
    counts = {f"{plural}count": str(count) for plural, count in view.visible_counts(model.groups).items()}
    return row._replace(attributes="{" + join_members(split_members(row.attributes) | counts) + "}")


def subtree_lister(view: View, parsed: ParsedRequest) -> ListSubtree:
    """A function that lists entities below a path: `View.subtree`, or `View.subtree_lister`, which resolves `xref`."""
    return view.subtree if parsed.flags.doc else view.subtree_lister(parsed.target.xid, types_with_xref(parsed))


def inlined_rows(
    subtree: ListSubtree,
    row: EntityRow,
    inline: InlineTree,
    definitions: RegistryDefinitions,
    filter_effects: FilterEffects | None = None,
) -> Iterator[EntityRow]:
    """The rows inlined below an entity, in response order."""
    subtree = filter_effects.surviving_rows_below(row) if filter_effects else subtree
    if row.xid != xids.REGISTRY:
        return subtree(row.xid, set(inlined_types(row.type, inline)))
    groups = (plural for plural in definitions.model.groups if plural in inline)
    return chain.from_iterable(
        subtree(f"/{plural}", {plural, *inlined_types(plural, inline[plural])}) for plural in groups
    )


def filter_entity(view: View, parsed: ParsedRequest, row: EntityRow) -> FilterEffects | None:
    """The effects of a filter on a single entity; None without a filter.

    Raises: BadFilter; NotFound if the filter removes the entity.
    """
    filter = filter_of(parsed)
    if filter is None:
        return None
    row_overrides = view.row_overrides(row.xid, types_with_xref(parsed), uses_index=True)
    selection = view.selection(row.xid, filter, parsed.request.base, row_overrides)
    if not selection.is_selected(row):
        raise problems.NotFound(parsed.target.xid)
    return FilterEffects(selection)


def _collection_content(
    view: View, parsed: ParsedRequest, inline: InlineTree, owner: EntityRow, pagelimit: int
) -> ResponseContent:
    _, target, flags, definitions = parsed
    type = xids.type_of(target.xid)
    types = set(inlined_types(type, inline))
    page_limit = pagelimit if definitions.capabilities.pagination else 0
    if not page_limit and all(flag is None for flag in (flags.filter, flags.sort, flags.limit, flags.cursor)):
        rows = subtree_lister(view, parsed)(target.xid, {type, *types})
        return ResponseContent(target, definitions, flags, inline, rows)
    listing = list_collection(view, parsed, owner, types, page_limit)
    rows = without_resolved(listing.rows) if flags.doc else listing.rows
    return ResponseContent(
        target, definitions, flags, inline, rows, filter_effects=listing.filter_effects, links=listing.links
    )


def inlined_configuration(view: View, inline: InlineTree) -> dict[str, str]:
    """The JSON text of each inlined part of the registry's configuration."""
    if not any(name in inline for name in CONFIGURATION_NAMES):
        return {}
    return configuration_texts(inline, view.entity(xids.MODEL), view.entity(xids.CAPABILITIES))


#: Collections whose members can be rendered from their stored texts.
_STORED_COLLECTION_KINDS: Final = frozenset((PathKind.RESOURCES, PathKind.VERSIONS))


def _first_chunks(pieces: Iterator[str]) -> tuple[tuple[bytes, ...], bool]:
    """The first chunk of a body, in parts, and whether the body ends with it."""
    chunks: list[bytes] = []
    for chunk in encode_chunks(pieces, PART_SIZE):
        chunks.append(chunk)
        if len(chunks) * PART_SIZE >= CHUNK_SIZE:
            return tuple(chunks), False
    return tuple(chunks), True


def _render_pieces(response_content: ResponseContent, base_url: str, view: View | None) -> Iterator[str]:
    """The JSON text of the content. view: None for content without rows, which shows no documents."""
    if view is None:
        return render_json(response_content, base_url, _refuse_document)
    documents = DocumentBatches(view)
    rows = documents.read_ahead(response_content.rows)
    return render_json(replace(response_content, rows=rows), base_url, documents.read)


def _refuse_document(sha256: str) -> bytes:
    raise AssertionError("where nothing is inlined, no document is shown")


def _owner_xid(target: RequestTarget) -> str:
    """The xid of the entity that has to exist: a collection's owner, or `RequestTarget.row_xid`."""
    if target.kind in COLLECTION_KINDS:
        return xids.parent(f"{target.xid}/-") or xids.REGISTRY
    return target.row_xid

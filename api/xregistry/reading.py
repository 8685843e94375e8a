"""GET requests, answered from the read model."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from api.http import conditional
from api.http.limits import limit_rows
from api.http.problem_response import root_link
from api.http.request import Request
from api.http.response import JSON, NO_HEADERS, Response
from api.http.streaming import StreamingPool
from api.registry.definitions import DefinitionsCache, RegistryDefinitions
from api.xregistry.listing import filter_of, list_collection, types_with_xref
from api.xregistry.render.documents import ReadDocument
from api.xregistry.render.entities import CHUNK_SIZE, PART_SIZE, configuration_texts, encode_chunks
from api.xregistry.render.explicit_values import without_defaults
from api.xregistry.render.filter_effects import FilterEffects
from api.xregistry.render.response import ResponseContent, document_response, json_headers, json_response, render_json
from api.xregistry.request.flags import NO_FLAGS, Flags, parse_flags, requested_asof
from api.xregistry.request.inline import CONFIGURATION_NAMES, NO_INLINE, InlineTree, inlined_types, parse_inline
from api.xregistry.request.paths import COLLECTION_KINDS, PathKind, RequestTarget, resolve_path
from api.xregistry.request.request_checks import check_method
from api.xregistry.snapshots import Snapshot, Snapshots
from domain.decisions.capabilities import offered_capabilities
from domain.errors import problems
from domain.values import xid as xids
from domain.values.json_text import dumps
from projections.entities.query import ListSubtree, View, ViewPool
from projections.entities.rows import EntityRow
from projections.entities.xref import without_resolved, xref_of


class OutdatedDefinitions(Exception):
    """The definitions under which a request was parsed are no longer in force."""


class XRegistryReadHandler:
    """Handles GET requests: single entities in the event loop, trees and collections from a snapshot in a thread."""

    def __init__(
        self,
        readers: ViewPool,
        latest: DefinitionsCache,
        moments: Snapshots,
        streams: StreamingPool,
        pagelimit: int = 0,
        max_inlined: int = 0,
    ) -> None:
        """A limit of 0 means no limit. pagelimit: members of a page. max_inlined: inlined entities in a response."""
        self._max_inlined = max_inlined
        self._readers = readers
        self._moments = moments
        self._pagelimit = pagelimit
        self._latest = latest
        self._streams = streams

    async def answer(self, request: Request) -> Response:
        """The response to a GET. Raises: Problem."""
        if request.query and (asof := requested_asof(request.query)) is not None:
            return await self._answer_as_of(request, asof)
        known = self._latest.definitions
        while True:
            try:
                answer = self._answer_from_row(request, known)
                return answer or await self._stream(request, whole=self._stored_collection(request, known))
            except (OutdatedDefinitions, problems.Problem):
                if (now := self._latest.current(self._readers.quick_view())) is known:
                    raise
                known = now

    async def offered_capabilities(self, request: Request) -> Response:
        """The capabilities that this server can offer.

        They depend on the program only; with `asof`, the past capabilities decide whether this path was available.
        Raises: Problem.
        """
        asof = requested_asof(request.query)
        then = await self._snapshot(request, asof) if asof is not None else None
        parse_target_and_flags(request, then.definitions if then else self._latest.current(self._readers.quick_view()))
        answer = Response(200, [JSON, root_link(request.base)], dumps(offered_capabilities()))
        return then.add_headers(answer, request) if then else answer

    async def _answer_as_of(self, request: Request, asof: str) -> Response:
        """The response as of a moment. Raises: Problem."""
        then = await self._snapshot(request, asof)
        tag = conditional.log_tag(then.position, request, then.definitions.positions)
        try:
            if b"filter" in request.query:
                # A filter on a Resource may have to read many Versions, so it does not run in the event loop.
                answer = await asyncio.to_thread(self._answer_from_row, request, then.definitions, then)
            else:
                answer = self._answer_from_row(request, then.definitions, then)
            if answer:
                conditional.check_conditions(request, tag)
                answer = conditional.add_entity_tag(answer, tag)
            return then.add_headers(answer or await self._stream(request, then), request)
        except conditional.NotModified as unchanged:
            return then.add_headers(conditional.not_modified_response(request, unchanged), request)

    async def _snapshot(self, request: Request, asof: str) -> Snapshot:
        """The snapshot that a request names. Raises: BadRequest; NotFound if the registry did not exist then."""
        then = await self._moments.find(asof)
        if then.position == 0:
            raise problems.NotFound(request.path)
        return then

    def _answer_from_row(
        self, request: Request, definitions: RegistryDefinitions, then: Snapshot | None = None
    ) -> Response | None:
        """The response if a single row is enough, otherwise None. A response about the past has no entity tag.

        Raises: OutdatedDefinitions, Problem.
        """
        target, flags = parse_target_and_flags(request, definitions)
        if flags.inline is not None:
            parse_inline(flags.inline, target, definitions.model, definitions.capabilities)
        document = target.has_document_body and not flags.doc
        if target.kind in COLLECTION_KINDS or ((flags.inline is not None or flags.filter is not None) and not document):
            return None
        view = self._readers.quick_view()
        if then:
            view = then.view(view)
        content = b""
        if document:
            row, *positions, content = view.entity_with_document(target.row_xid)
        else:
            row, *positions = view.entity_with_definitions(target.row_xid)
        if tuple(positions) != definitions.positions:
            raise OutdatedDefinitions
        if row is None or xref_of(row):
            return self._answer_from_xref(request, view, target, flags, definitions)
        if flags.filter is not None:
            return self._filtered_document(request, view, target, flags, definitions, row)
        tag = None if then else conditional.row_tag(row, request, definitions.positions)
        conditional.check_conditions(request, tag)
        shown = ResponseContent(target, definitions, flags, NO_INLINE, (row,))
        answer = document_response if document else json_response
        return answer(shown, request.base, lambda _: content, conditional.tag_headers(tag) if tag else NO_HEADERS)

    def _answer_from_xref(
        self, request: Request, view: View, target: RequestTarget, flags: Flags, definitions: RegistryDefinitions
    ) -> Response | None:
        """The document of a Resource with `xref`, or of one of its Versions; None if the request is not for a document.

        Raises: NotFound if the entity does not exist, with the `xref` resolved or not; CannotDocXref.
        """
        row = load_row(view, target, flags)
        if row is None:
            raise problems.NotFound(target.xid)
        if not target.has_document_body or flags.doc:
            return None
        return self._filtered_document(request, view, target, flags, definitions, row)

    def _filtered_document(
        self,
        request: Request,
        view: View,
        target: RequestTarget,
        flags: Flags,
        definitions: RegistryDefinitions,
        row: EntityRow,
    ) -> Response:
        """A document whose entity passes a filter.

        It has no entity tag, because other entities affect the result too.
        """
        shown = ResponseContent(
            target,
            definitions,
            flags,
            NO_INLINE,
            (row,),
            narrowing=filter_entity(view, request, target, flags, definitions, row),
        )
        return document_response(shown, request.base, view.document)

    @contextmanager
    def _open_content(
        self, request: Request, then: Snapshot | None, whole: ResponseContent | None
    ) -> Iterator[tuple[ResponseContent, EntityRow | None, int, ReadDocument]]:
        """The content of a response, the row of its entity, its log position, and the reader of its documents."""
        if whole:
            with self._readers.stream_collection(whole.target.xid, whole.definitions.positions) as listed:
                if listed:
                    yield replace(whole, texts=listed.texts), None, listed.position, _no_document
                    return
        with self._readers.view() as now:
            view = then.view(now) if then else now
            definitions = then.definitions if then else self._latest.current(view)
            yield *load_response_content(request, view, definitions, self._pagelimit), view.position(), view.document

    def _stored_collection(self, request: Request, definitions: RegistryDefinitions) -> ResponseContent | None:
        """The content of a full collection of Resources or Versions that stored texts can render; otherwise None.

        Also None for a HEAD request, which would abort the database cursor. Raises: Problem, NotModified.
        """
        target, flags = parse_target_and_flags(request, definitions)
        pages = self._pagelimit if definitions.capabilities.pagination else 0
        whole = ResponseContent(target, definitions, flags, NO_INLINE, ())
        if target.kind not in _LISTED or flags != NO_FLAGS or pages or whole.has_shortself or request.method == "HEAD":
            return None
        view = self._readers.quick_view()
        if conditional.is_conditional(request) and view.entity(_entity_of(target)):
            conditional.check_conditions(request, conditional.log_tag(view.position(), request, definitions.positions))
        return whole

    async def _stream(
        self, request: Request, then: Snapshot | None = None, whole: ResponseContent | None = None
    ) -> Response:
        def job() -> Generator[Any, None, None]:
            with self._open_content(request, then, whole) as (shown, row, position, documents):
                tag = conditional.log_tag(position, request, shown.definitions.positions)
                conditional.check_conditions(request, tag)
                if self._max_inlined and shown.inline:
                    shown = replace(shown, rows=limit_rows(shown.rows, self._max_inlined))
                pieces = render_json(shown, request.base, documents)
                headers = [*json_headers(shown, request.base, row), *conditional.tag_headers(tag)]
                # Sent together with the head, because each switch from a thread to the event loop costs as much as
                # fifty rows.
                ahead, ended = _first_chunks(pieces) if request.method != "HEAD" else ((), False)
                yield headers, ahead, ended
                yield from () if ended else encode_chunks(pieces)

        (headers, ahead, ended), body = await self._streams.start(job)
        if ended:
            await body.aclose()
            return Response(200, headers, ahead[-1], first_chunks=ahead[:-1])
        return Response(200, headers, body, first_chunks=ahead)


def parse_target_and_flags(request: Request, definitions: RegistryDefinitions) -> tuple[RequestTarget, Flags]:
    """The target and the flags of a request, under the model and the capabilities. Raises: Problem."""
    target = resolve_path(request.segments, definitions.model, request.details, not request.is_read)
    check_method(request, target, definitions.capabilities)
    return target, parse_flags(request.query, target, request.method, definitions.capabilities)


def load_response_content(
    request: Request, view: View, definitions: RegistryDefinitions, pagelimit: int = 0
) -> tuple[ResponseContent, EntityRow | None]:
    """The content of a GET response, and the row of its entity; None as row for a collection. Raises: Problem."""
    target, flags = parse_target_and_flags(request, definitions)
    inline = parse_inline(flags.inline or (), target, definitions.model, definitions.capabilities)
    row = load_row(view, target, flags)
    if row is None:
        raise problems.NotFound(target.xid)
    if target.kind in COLLECTION_KINDS:
        return _collection(request, view, target, flags, definitions, inline, row, pagelimit), None
    texts = inlined_configuration(view, inline) if target.kind in (PathKind.REGISTRY, PathKind.EXPORT) else {}
    narrowing = filter_entity(view, request, target, flags, definitions, row)
    below_it = inlined_rows(subtree_lister(view, target, flags, definitions), row, inline, definitions, narrowing)
    rows: Iterator[EntityRow] = chain((row,), without_resolved(below_it) if flags.doc else below_it)
    if flags.stated:
        rows = without_defaults(rows)
    return ResponseContent(target, definitions, flags, inline, rows, texts, narrowing=narrowing), row


def load_row(view: View, target: RequestTarget, flags: Flags) -> EntityRow | None:
    """The row that has to exist, with its `xref` resolved: a collection's owner, or `RequestTarget.row_xid`.

    Raises: CannotDocXref for Versions of a Resource with `xref` in a document view.
    """
    row = view.resolved_entity(_entity_of(target))
    if flags.doc and row is not None and target.kind in (PathKind.VERSIONS, PathKind.VERSION):
        resource = xids.join(*xids.segments(target.xid)[:4])
        if xref_of(view.entity(resource)):
            raise problems.CannotDocXref(resource)
    return row


def subtree_lister(view: View, target: RequestTarget, flags: Flags, definitions: RegistryDefinitions) -> ListSubtree:
    """The function that lists the entities below a path: `View.subtree`, or `View.tree`, which resolves `xref`."""
    return view.subtree if flags.doc else view.tree(target.xid, types_with_xref(target, definitions.model))


def inlined_rows(
    subtree: ListSubtree,
    row: EntityRow,
    inline: InlineTree,
    definitions: RegistryDefinitions,
    narrowing: FilterEffects | None = None,
) -> Iterator[EntityRow]:
    """The rows inlined below an entity, in response order."""
    subtree = narrowing.surviving_rows_below(row) if narrowing else subtree
    if row.xid != xids.REGISTRY:
        return subtree(row.xid, set(inlined_types(row.type, inline)))
    groups = (plural for plural in definitions.model.groups if plural in inline)
    return chain.from_iterable(
        subtree(f"/{plural}", {plural, *inlined_types(plural, inline[plural])}) for plural in groups
    )


def filter_entity(
    view: View, request: Request, target: RequestTarget, flags: Flags, definitions: RegistryDefinitions, row: EntityRow
) -> FilterEffects | None:
    """The effects of a filter on a single entity; None without a filter.

    Raises: BadFilter; NotFound if the filter removes the entity.
    """
    filter = filter_of(flags, target, definitions.model)
    if filter is None:
        return None
    moment = view.row_overrides(row.xid, types_with_xref(target, definitions.model))
    selection = view.selection(row.xid, filter, request.base, moment)
    if not selection.survives(row):
        raise problems.NotFound(target.xid)
    return FilterEffects(selection)


def _collection(
    request: Request,
    view: View,
    target: RequestTarget,
    flags: Flags,
    definitions: RegistryDefinitions,
    inline: InlineTree,
    owner: EntityRow,
    pagelimit: int,
) -> ResponseContent:
    type = xids.type_of(target.xid)
    types = set(inlined_types(type, inline))
    pages = pagelimit if definitions.capabilities.pagination else 0
    if not pages and all(asked is None for asked in (flags.filter, flags.sort, flags.limit, flags.cursor)):
        rows = subtree_lister(view, target, flags, definitions)(target.xid, {type, *types})
        return ResponseContent(target, definitions, flags, inline, rows)
    listed = list_collection(view, request, target, flags, definitions.model, owner, types, pages)
    rows = without_resolved(listed.rows) if flags.doc else listed.rows
    return ResponseContent(target, definitions, flags, inline, rows, narrowing=listed.narrowing, links=listed.links)


def inlined_configuration(view: View, inline: InlineTree) -> dict[str, str]:
    """The JSON text of each inlined part of the registry's configuration."""
    if not any(name in inline for name in CONFIGURATION_NAMES):
        return {}
    return configuration_texts(inline, view.entity(xids.MODEL), view.entity(xids.CAPABILITIES))


#: Collections whose members can be rendered from their stored texts.
_LISTED: Final = frozenset((PathKind.RESOURCES, PathKind.VERSIONS))


def _first_chunks(pieces: Iterator[str]) -> tuple[tuple[bytes, ...], bool]:
    """The first chunk of a body, in parts, and whether the body ends with it."""
    made: list[bytes] = []
    for part in encode_chunks(pieces, PART_SIZE):
        made.append(part)
        if len(made) * PART_SIZE >= CHUNK_SIZE:
            return tuple(made), False
    return tuple(made), True


def _no_document(sha256: str) -> bytes:
    raise AssertionError("where nothing is inlined, no document is shown")


def _entity_of(target: RequestTarget) -> str:
    """The xid of the entity that has to exist: a collection's owner, or `RequestTarget.row_xid`."""
    if target.kind in COLLECTION_KINDS:
        return xids.parent(f"{target.xid}/-") or xids.REGISTRY
    return target.row_xid

"""PUT, PATCH, POST and DELETE: submits a command to the CommandBus and renders the result.

The rows of the response are read before the commit: if the response cannot be built, the command is undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from api.http import conditional
from api.http.problem_response import root_link
from api.http.request import Request
from api.http.response import Response
from api.registry.definitions import DefinitionsCache
from api.registry.header_attributes import CORRELATION_HEADER
from api.xregistry.dryrun import dry_run, findings_headers
from api.xregistry.listing import filter_of, sort_of, types_with_xref
from api.xregistry.reading import (
    filter_entity,
    inlined_configuration,
    inlined_rows,
    parse_target_and_flags,
    subtree_lister,
)
from api.xregistry.render.filter_effects import FilterEffects
from api.xregistry.render.response import ResponseContent, document_response, json_response
from api.xregistry.request.flags import Flags
from api.xregistry.request.inline import InlineTree, inlined_types, parse_inline
from api.xregistry.request.parse import parse_command
from api.xregistry.request.paths import COLLECTION_KINDS, PathKind, RequestTarget
from commands.command_bus import CommandBus
from commands.store.log import Recorded
from commands.store.log import WriteTransaction as Transaction
from domain.filters import Sort
from domain.registry.events import EntityCreated
from projections.entities.filters.by_document import sort_key_of
from projections.entities.filters.pages import BY_ID
from projections.entities.query import ListSubtree, View, ViewPool
from projections.entities.rows import EntityRow
from projections.entities.xref import without_resolved, xref_of

#: Larger bodies (in bytes) are parsed, and responses with more rows are rendered, outside the event loop.
LARGE_BODY: Final = 1 << 15
MANY_ROWS: Final = 50


class XRegistryWriteHandler:
    """Handles requests that change the registry."""

    def __init__(self, road: CommandBus, readers: ViewPool, latest: DefinitionsCache) -> None:
        self._command_bus = road
        self._readers = readers
        self._latest = latest

    async def answer(self, request: Request, body: bytes) -> Response:
        """The response to a write that is durable, or to a dry run. Raises: Problem."""
        definitions = self._latest.current(self._readers.quick_view())
        target, flags = parse_target_and_flags(request, definitions)
        parsed = partial(parse_command, request, target, flags, definitions, body)
        command = await asyncio.to_thread(parsed) if len(body) > LARGE_BODY else parsed()

        def shown(transaction: Transaction, recorded: Recorded) -> ResponseContent | None:
            return self._response_content(View.of_connection(transaction.connection), request, target, flags, recorded)

        condition = conditional.write_condition(request, target.row_xid)
        if flags.dryrun:
            return await dry_run(request, self._command_bus, command, condition, shown)
        recorded = await asyncio.wrap_future(
            self._command_bus.submit(command, request.caller, shown, condition, again=parsed)
        )
        return await self._response(request, recorded)

    def _response_content(
        self, view: View, request: Request, target: RequestTarget, flags: Flags, recorded: Recorded
    ) -> ResponseContent | None:
        """The content of a write's response; None if the response has no body. Runs before the commit."""
        if request.method == "DELETE":
            return None
        definitions = self._latest.read_uncached(view)
        post = request.method == "POST"
        if post and target.kind is PathKind.RESOURCE:
            target = target.version(recorded.processed[0])
        inline = parse_inline(flags.inline or (), target, definitions.model, definitions.capabilities)
        shown = ResponseContent(target, definitions, flags, inline, (), created=_created(recorded))
        subtree = subtree_lister(view, target, flags, definitions)
        if target.kind in COLLECTION_KINDS:
            narrowing = _filter_effects(view, request, shown)
            sort = sort_of(flags, target, definitions.model) or BY_ID
            rows = _written_rows(view, recorded, lambda row: inline, subtree, narrowing, sort)
            return replace(shown, rows=_rows_of_view(rows, flags), narrowing=narrowing)
        if post and target.kind in (PathKind.REGISTRY, PathKind.GROUP):
            narrowing = _filter_effects(view, request, shown)
            rows = _written_rows(view, recorded, lambda row: inline.get(_plural(row), {}), subtree, narrowing)
            return replace(shown, rows=_rows_of_view(rows, flags), maps=True, narrowing=narrowing)
        row = view.resolved_entity(target.row_xid)
        if row is None:
            return None
        texts = inlined_configuration(view, inline) if target.kind is PathKind.REGISTRY else {}
        narrowing = filter_entity(view, request, target, flags, definitions, row)
        below_it = inlined_rows(subtree, row, inline, definitions, narrowing)
        rows = (row, *(without_resolved(below_it) if flags.doc else below_it))
        # The counts are read now, inside the uncommitted transaction.
        return replace(shown, rows=rows, configuration=texts, narrowing=narrowing and narrowing.load_counts(rows))

    async def _response(self, request: Request, recorded: Recorded) -> Response:
        headers = findings_headers(recorded)
        if recorded.xregcorrelationid is not None:
            headers.append((CORRELATION_HEADER, recorded.xregcorrelationid.encode()))
        shown: ResponseContent | None = recorded.answer
        if shown is None:
            return Response(204, [root_link(request.base), *headers])
        answer = await self._render_response(shown, request.base)
        if shown.is_new:
            kept = [(name, value) for name, value in answer.headers if name != b"location"]
            answer = replace(answer, status=201, headers=[*kept, shown.location_header(request.base)])
        return replace(answer, headers=[*answer.headers, *headers])

    async def _render_response(self, shown: ResponseContent, base: str) -> Response:
        rows = tuple(shown.rows)
        if len(rows) > MANY_ROWS:
            return await asyncio.to_thread(self._render, shown, base)
        return self._render(shown, base)

    def _render(self, shown: ResponseContent, base: str) -> Response:
        # Documents never change, so this thread's reader reads them after the commit.
        documents = self._readers.quick_view().document
        return document_response(shown, base, documents) if shown.is_document else json_response(shown, base, documents)


def _created(recorded: Recorded) -> tuple[str, ...]:
    return tuple(event.xid for _, event in recorded.events if isinstance(event, EntityCreated))


def _written_rows(
    view: View,
    recorded: Recorded,
    inline_of: Callable[[EntityRow], InlineTree],
    subtree: ListSubtree,
    narrowing: FilterEffects | None,
    sort: Sort = BY_ID,
) -> tuple[EntityRow, ...]:
    """The entities that a request named and that still exist, in order, each with the rows inlined below it."""
    found: list[EntityRow] = []
    stored = view.entities(tuple(dict.fromkeys(recorded.processed)))
    rows = [(view.resolved_entity(row.xid) or row) if xref_of(row) else row for row in stored]
    for row in sorted(rows, key=lambda row: sort_key_of(row, sort), reverse=sort.descending):
        if narrowing is None or narrowing.survives(row):
            inside = narrowing.surviving_rows_below(row) if narrowing else subtree
            found += (row, *inside(row.xid, set(inlined_types(row.type, inline_of(row)))))
    if narrowing:
        narrowing.load_counts(found)
    return tuple(found)


def _rows_of_view(rows: tuple[EntityRow, ...], flags: Flags) -> tuple[EntityRow, ...]:
    return tuple(without_resolved(rows)) if flags.doc else rows


def _filter_effects(view: View, request: Request, shown: ResponseContent) -> FilterEffects | None:
    """The effects of a filter on the members of one or more collections; None without a filter. Raises: BadFilter."""
    filter = filter_of(shown.flags, shown.target, shown.definitions.model)
    if filter is None:
        return None
    moment = view.row_overrides(shown.target.xid, types_with_xref(shown.target, shown.definitions.model))
    selection = view.selection(shown.target.xid, filter, request.base, moment)
    owner = None if shown.target.kind in COLLECTION_KINDS else view.entity(shown.target.row_xid)
    return FilterEffects(selection, selection.state.descend(owner, request.base) if owner else None)


def _plural(row: EntityRow) -> str:
    return row.type.rpartition(".")[2]

"""PUT, PATCH, POST and DELETE: submits a command to the CommandBus and renders the result.

The rows of the response are read before the commit: if the response cannot be built, the command is undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from annals.api.http import conditional
from annals.api.http.limits import LARGE_BODY
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Response
from annals.api.registry.definitions import DefinitionsCache, OutdatedDefinitions, RegistryDefinitions
from annals.api.registry.loop_future import LoopFuture
from annals.api.xregistry.dryrun import dry_run, findings_headers
from annals.api.xregistry.listing import filter_of, sort_of, types_with_xref
from annals.api.xregistry.reading import (
    filter_entity,
    inlined_configuration,
    inlined_rows,
    subtree_lister,
)
from annals.api.xregistry.render.filter_effects import FilterEffects
from annals.api.xregistry.render.response import ResponseContent, document_response, json_response
from annals.api.xregistry.request.flags import Flags
from annals.api.xregistry.request.inline import InlineTree, inlined_types
from annals.api.xregistry.request.parse import parse_command
from annals.api.xregistry.request.parsed_request import ParsedRequest, parse_request
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind
from annals.commands.command_bus import CommandBus
from annals.commands.pending_command import PendingCommand
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.filters import Sort
from annals.domain.registry.events import EntityCreated
from annals.domain.values import xid as xids
from annals.projections.entities.filters.by_document import sort_key_of
from annals.projections.entities.filters.pages import BY_ID
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.entities.view import ListSubtree, View
from annals.projections.entities.view_pool import ViewPool
from annals.projections.entities.xref import without_resolved, xref_of
from annals.projections.log.answer_position import note_position

#: Responses with more rows are rendered outside the event loop.
MANY_ROWS: Final = 50


class XRegistryWriteHandler:
    """Handles requests that change the registry."""

    def __init__(self, command_bus: CommandBus, readers: ViewPool, definitions_cache: DefinitionsCache) -> None:
        self._command_bus = command_bus
        self._readers = readers
        self._definitions_cache = definitions_cache

    async def answer(self, request: Request, body: bytes) -> Response:
        """The response to a write that is durable, or to a dry run. Raises: Problem."""
        # Reading which definitions are in force takes a query, and they seldom change.
        definitions = self._definitions_cache.definitions
        while True:
            try:
                return await self._answer_under(definitions, request, body)
            except OutdatedDefinitions:
                view = self._readers.quick_view()
                definitions = await self._readers.read(self._definitions_cache.current, view)

    async def _answer_under(self, definitions: RegistryDefinitions, request: Request, body: bytes) -> Response:
        """The response to a request that is parsed under some definitions.

        Raises: Problem; OutdatedDefinitions if the registry has others when the command is decided.
        """
        check = definitions.require_in_force
        try:
            parsed = parse_request(request, definitions)
            build_command = partial(parse_command, parsed, body)
            command = await asyncio.to_thread(build_command) if len(body) > LARGE_BODY else build_command()
        except Exception:
            await self._readers.read(check, self._readers.quick_view())
            raise

        def build_response(transaction: WriteTransaction, recorded: Recorded) -> ResponseContent | None:
            return self._response_content(TransactionView(transaction), parsed, recorded)

        requested_condition = conditional.write_condition(request, parsed.target.row_xid)

        def condition(transaction: WriteTransaction) -> None:
            check(TransactionView(transaction))
            if requested_condition is not None:
                requested_condition(transaction)

        if parsed.flags.dryrun:
            return await dry_run(request, self._command_bus, command, condition, build_response)
        future = LoopFuture()
        self._command_bus.enqueue(
            PendingCommand(
                command, request.caller, build_response, condition, rebuild_command=build_command, future=future
            )
        )
        recorded = await future.outcome
        if any(event.xid in (xids.MODEL, xids.CAPABILITIES) for _, event in recorded.events):
            # What reads no view, such as the short names of other paths, follows this process's own writes at once.
            await self._readers.read(self._definitions_cache.current, self._readers.quick_view())
        return await self._response(request, recorded)

    def _response_content(self, view: View, parsed: ParsedRequest, recorded: Recorded) -> ResponseContent | None:
        """The content of a write's response; None if the response has no body. Runs before the commit."""
        if parsed.request.method == "DELETE":
            return None
        is_post = parsed.request.method == "POST"
        parsed = parsed._replace(definitions=self._definitions_cache.read_uncached(view))
        if is_post and parsed.target.kind is PathKind.RESOURCE:
            parsed = parsed._replace(target=parsed.target.version(recorded.processed[0]))
        _, target, flags, definitions = parsed
        inline = parsed.inline()
        created_xids = _created_xids(recorded)
        is_collection = target.kind in COLLECTION_KINDS
        if is_collection or (is_post and target.kind in (PathKind.REGISTRY, PathKind.GROUP)):
            response_content = ResponseContent(
                target,
                definitions,
                flags,
                inline,
                (),
                is_map_of_collections=not is_collection,
                created_xids=created_xids,
            )
            return _collections_content(view, parsed, response_content, recorded)
        row = view.resolved_entity(target.row_xid)
        if row is None:
            return None
        texts = inlined_configuration(view, inline) if target.kind is PathKind.REGISTRY else {}
        filter_effects = filter_entity(view, parsed, row)
        rows = (row, *_inlined_rows(view, row, inline, parsed, filter_effects))
        if filter_effects:  # the counts are read now, inside the uncommitted transaction
            filter_effects = filter_effects.load_counts(rows)
        return ResponseContent(
            target, definitions, flags, inline, rows, texts, created_xids=created_xids, filter_effects=filter_effects
        )

    async def _response(self, request: Request, recorded: Recorded) -> Response:
        note_position(recorded.position)
        headers = findings_headers(recorded)
        if recorded.xregcorrelationid is not None:
            headers.append((CORRELATION_HEADER, recorded.xregcorrelationid.encode()))
        response_content: ResponseContent | None = recorded.answer
        if response_content is None:
            return Response(204, [root_link(request.base), *headers])
        response = await self._render_response(response_content, request.base)
        if not response_content.is_new:
            return replace(response, headers=[*response.headers, *headers])
        kept_headers = [(name, value) for name, value in response.headers if name != b"location"]
        location = response_content.location_header(request.base)
        return replace(response, status=201, headers=[*kept_headers, location, *headers])

    async def _render_response(self, response_content: ResponseContent, base_url: str) -> Response:
        rows = tuple(response_content.rows)
        if len(rows) > MANY_ROWS:
            return await asyncio.to_thread(self._render, response_content, base_url)
        if response_content.is_document:
            return await self._readers.read(self._render, response_content, base_url)
        return self._render(response_content, base_url)

    def _render(self, response_content: ResponseContent, base_url: str) -> Response:
        # Documents never change, so this thread's reader reads them after the commit.
        documents = self._readers.quick_view().document
        return (
            document_response(response_content, base_url, documents)
            if response_content.is_document
            else json_response(response_content, base_url, documents)
        )


def _inlined_rows(
    view: View,
    row: EntityRow,
    inline: InlineTree,
    parsed: ParsedRequest,
    filter_effects: FilterEffects | None,
) -> Iterable[EntityRow]:
    if not inline:
        return ()
    rows = inlined_rows(subtree_lister(view, parsed), row, inline, parsed.definitions, filter_effects)
    return without_resolved(rows) if parsed.flags.doc else rows


def _collections_content(
    view: View, parsed: ParsedRequest, response_content: ResponseContent, recorded: Recorded
) -> ResponseContent:
    """The content of a response that shows one or more collections."""
    inline = response_content.inline
    subtree = subtree_lister(view, parsed)
    filter_effects = _filter_effects(view, parsed)
    if response_content.is_map_of_collections:
        rows = _written_rows(view, recorded, lambda row: inline.get(_plural_of_row(row), {}), subtree, filter_effects)
    else:
        sort = sort_of(parsed) or BY_ID
        rows = _written_rows(view, recorded, lambda row: inline, subtree, filter_effects, sort)
    return replace(response_content, rows=_rows_of_view(rows, parsed.flags), filter_effects=filter_effects)


def _created_xids(recorded: Recorded) -> tuple[str, ...]:
    return tuple(event.xid for _, event in recorded.events if isinstance(event, EntityCreated))


def _written_rows(
    view: View,
    recorded: Recorded,
    inline_of: Callable[[EntityRow], InlineTree],
    subtree: ListSubtree,
    filter_effects: FilterEffects | None,
    sort: Sort = BY_ID,
) -> tuple[EntityRow, ...]:
    """The entities that a request named and that still exist, in order, each with the rows inlined below it."""
    response_rows: list[EntityRow] = []
    stored_rows = view.entities(tuple(dict.fromkeys(recorded.processed)))
    rows = [(view.resolved_entity(row.xid) or row) if xref_of(row) else row for row in stored_rows]
    for row in sorted(rows, key=lambda row: sort_key_of(row, sort), reverse=sort.descending):
        if filter_effects is None or filter_effects.is_selected(row):
            list_subtree = filter_effects.surviving_rows_below(row) if filter_effects else subtree
            response_rows += (row, *list_subtree(row.xid, set(inlined_types(row.type, inline_of(row)))))
    if filter_effects:
        filter_effects.load_counts(response_rows)
    return tuple(response_rows)


def _rows_of_view(rows: tuple[EntityRow, ...], flags: Flags) -> tuple[EntityRow, ...]:
    return tuple(without_resolved(rows)) if flags.doc else rows


def _filter_effects(view: View, parsed: ParsedRequest) -> FilterEffects | None:
    """The effects of a filter on the members of one or more collections; None without a filter. Raises: BadFilter."""
    filter = filter_of(parsed)
    if filter is None:
        return None
    target, base_url = parsed.target, parsed.request.base
    row_overrides = view.row_overrides(target.xid, types_with_xref(parsed), uses_index=True)
    selection = view.selection(target.xid, filter, base_url, row_overrides)
    owner = None if target.kind in COLLECTION_KINDS else view.entity(target.row_xid)
    return FilterEffects(selection, selection.state.descend(owner, base_url) if owner else None)


def _plural_of_row(row: EntityRow) -> str:
    return row.type.rpartition(".")[2]

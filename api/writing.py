"""PUT, PATCH, POST and DELETE: a command goes down the one road, its answer comes from what it left behind.

What the answer shows is looked up before the command is committed: a request whose answer cannot be built is undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from api import conditional
from api.answer import Answer
from api.definitions import Latest
from api.dryrun import counted, tried
from api.flags import Flags
from api.headers import CORRELATION
from api.inline import Inline, below, parse_inline
from api.listing import filter_of, pointing, sort_of
from api.narrowing import Narrowing
from api.parse import parse_command
from api.paths import COLLECTIONS, Kind, Target
from api.problem import root_link
from api.reading import configured, narrowed, nested, tree, understood
from api.request import Request
from api.shown import Shown, document_answer, json_answer
from commands.handle import Road
from commands.log import Recorded
from commands.log import Writing as Transaction
from domain.events import EntityCreated
from domain.filters import Sort
from projections.entities.by_document import order_of
from projections.entities.pages import BY_ID
from projections.entities.query import Readers, Subtree, View
from projections.entities.rows import Row
from projections.entities.xref import without_pointed, xref_of

#: Bodies beyond this many bytes are parsed, and answers of more rows than this written, outside of the event loop.
LARGE_BODY: Final = 1 << 15
MANY_ROWS: Final = 50


class Writing:
    """Answers to requests that change the registry."""

    def __init__(self, road: Road, readers: Readers, latest: Latest) -> None:
        self._road = road
        self._readers = readers
        self._latest = latest

    async def answer(self, request: Request, body: bytes) -> Answer:
        """The answer to a write that is done and durable, or to one that was only tried. Raises: Problem."""
        definitions = self._latest.current(self._readers.quick())
        target, flags = understood(request, definitions)
        parsed = partial(parse_command, request, target, flags, definitions, body)
        command = await asyncio.to_thread(parsed) if len(body) > LARGE_BODY else parsed()

        def shown(transaction: Transaction, recorded: Recorded) -> Shown | None:
            return self._shown(View.over(transaction.connection), request, target, flags, recorded)

        condition = conditional.condition(request, target.owner)
        if flags.dryrun:
            return await tried(request, self._road, command, condition, shown)
        recorded = await asyncio.wrap_future(self._road.submit(command, request.caller, shown, condition, again=parsed))
        return await self._told(request, recorded)

    def _shown(self, view: View, request: Request, target: Target, flags: Flags, recorded: Recorded) -> Shown | None:
        """What the answer to a write shows, None where there is nothing to say; runs before the commit."""
        if request.method == "DELETE":
            return None
        definitions = self._latest.within(view)
        post = request.method == "POST"
        if post and target.kind is Kind.RESOURCE:
            target = target.version(recorded.processed[0])
        inline = parse_inline(flags.inline or (), target, definitions.model, definitions.capabilities)
        shown = Shown(target, definitions, flags, inline, (), created=_created(recorded))
        subtree = tree(view, target, flags, definitions)
        if target.kind in COLLECTIONS:
            narrowing = _narrowing(view, request, shown)
            sort = sort_of(flags, target, definitions.model) or BY_ID
            rows = _processed(view, recorded, lambda row: inline, subtree, narrowing, sort)
            return replace(shown, rows=_of_view(rows, flags), narrowing=narrowing)
        if post and target.kind in (Kind.REGISTRY, Kind.GROUP):
            narrowing = _narrowing(view, request, shown)
            rows = _processed(view, recorded, lambda row: inline.get(_plural(row), {}), subtree, narrowing)
            return replace(shown, rows=_of_view(rows, flags), maps=True, narrowing=narrowing)
        row = view.shown(target.owner)
        if row is None:
            return None
        texts = configured(view, inline) if target.kind is Kind.REGISTRY else {}
        narrowing = narrowed(view, request, target, flags, definitions, row)
        below_it = nested(subtree, row, inline, definitions, narrowing)
        rows = (row, *(without_pointed(below_it) if flags.doc else below_it))
        # The counts are looked up where the write is not yet committed.
        return replace(shown, rows=rows, configuration=texts, narrowing=narrowing and narrowing.settled(rows))

    async def _told(self, request: Request, recorded: Recorded) -> Answer:
        headers = counted(recorded)
        if recorded.xregcorrelationid is not None:
            headers.append((CORRELATION, recorded.xregcorrelationid.encode()))
        shown: Shown | None = recorded.answer
        if shown is None:
            return Answer(204, [root_link(request.base), *headers])
        answer = await self._rendered(shown, request.base)
        if shown.is_new:
            kept = [(name, value) for name, value in answer.headers if name != b"location"]
            answer = replace(answer, status=201, headers=[*kept, shown.location(request.base)])
        return replace(answer, headers=[*answer.headers, *headers])

    async def _rendered(self, shown: Shown, base: str) -> Answer:
        rows = tuple(shown.rows)
        if len(rows) > MANY_ROWS:
            return await asyncio.to_thread(self._render, shown, base)
        return self._render(shown, base)

    def _render(self, shown: Shown, base: str) -> Answer:
        # Documents never change, so they are read after the commit, by a reader of this thread.
        documents = self._readers.quick().document
        return document_answer(shown, base, documents) if shown.document else json_answer(shown, base, documents)


def _created(recorded: Recorded) -> tuple[str, ...]:
    return tuple(event.xid for _, event in recorded.events if isinstance(event, EntityCreated))


def _processed(
    view: View,
    recorded: Recorded,
    inline_of: Callable[[Row], Inline],
    subtree: Subtree,
    narrowing: Narrowing | None,
    sort: Sort = BY_ID,
) -> tuple[Row, ...]:
    """The entities that a request named and that live on, in order, each with what is inlined below it."""
    found: list[Row] = []
    stored = view.entities(tuple(dict.fromkeys(recorded.processed)))
    rows = [(view.shown(row.xid) or row) if xref_of(row) else row for row in stored]
    for row in sorted(rows, key=lambda row: order_of(row, sort), reverse=sort.descending):
        if narrowing is None or narrowing.survives(row):
            inside = narrowing.below(row) if narrowing else subtree
            found += (row, *inside(row.xid, set(below(row.type, inline_of(row)))))
    if narrowing:
        narrowing.settled(found)
    return tuple(found)


def _of_view(rows: tuple[Row, ...], flags: Flags) -> tuple[Row, ...]:
    return tuple(without_pointed(rows)) if flags.doc else rows


def _narrowing(view: View, request: Request, shown: Shown) -> Narrowing | None:
    """What a filter leaves of the members of a collection, or of several; None without one. Raises: BadFilter."""
    filter = filter_of(shown.flags, shown.target, shown.definitions.model)
    if filter is None:
        return None
    moment = view.moment(shown.target.xid, pointing(shown.target, shown.definitions.model))
    selection = view.selection(shown.target.xid, filter, request.base, moment)
    owner = None if shown.target.kind in COLLECTIONS else view.entity(shown.target.owner)
    return Narrowing(selection, selection.state.into(owner, request.base) if owner else None)


def _plural(row: Row) -> str:
    return row.type.rpartition(".")[2]

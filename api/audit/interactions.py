"""`/-/interactions`: all events of one request, and the list of all requests that changed something.

A caller with roles at some places sees the part of an interaction there, without the hashes, which cover all of it; an
interaction without such a part does not exist for the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Final

from annals.api.audit.formats import ListWrapper
from annals.api.audit.queries import find_interaction
from annals.api.audit.representations import (
    interaction_members,
    interaction_table,
    revision_table,
)
from annals.api.audit.request_params import AuditParams, parse_log_params, requested_range
from annals.api.audit.responses import RequestedTable, TableContent, may_see_outside_tree, paginate
from annals.api.feeds.rights import check_reads_something, visible_streams
from annals.api.http.next_link import next_link
from annals.api.http.request import Request
from annals.api.http.response import Headers
from annals.api.registry.open_registry import Registry
from annals.commands.store.hashes import Interaction
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.projections.audit.trail import Revision
from annals.projections.entities.view import View

INTERACTIONS: Final = "interactions"
#: The accepted parameters of the list and of a single interaction.
LIST_PARAMS: Final = ("caller", "id", "xids", "order", "after", "limit", "from", "until", "format")
ONE_PARAMS: Final = ("images", "after", "limit", "format")


def interactions_table(registry: Registry, request: Request) -> RequestedTable:
    """The list, or one interaction. Raises: NotFound, ApiNotFound, Forbidden, BadRequest."""
    names = request.segments[2:]
    if len(names) > 1:
        raise problems.ApiNotFound()
    return _interaction_table(request, names[0]) if names else _list_table(registry, request)


def _list_table(registry: Registry, request: Request) -> RequestedTable:
    check_reads_something(request.caller)
    wanted = parse_log_params(request, LIST_PARAMS)

    def look(full_view: View) -> TableContent:
        view = full_view.seen_by(request.caller)
        part = requested_range(wanted, view.log, registry.store.clock())
        found = paginate(
            request, wanted, view.trail.interaction_ends(part, wanted.caller, may_see_outside_tree(request.caller))
        )
        find_xids = _xid_finder(view, request.caller, wanted.xids) if wanted.xids else None
        table = interaction_table(with_hashes=request.caller.sees_everything, find_xids=find_xids)
        return TableContent(table, view.trail.interactions_at(found.positions), view.position(), links=found.links)

    return wanted, look


def _interaction_table(request: Request, xregcorrelationid: str) -> RequestedTable:
    wanted = parse_log_params(request, ONE_PARAMS)

    def look(view: View) -> TableContent:
        facts, done = find_interaction(view, xregcorrelationid, wanted) or (None, iter(()))
        things = _visible_revisions(request.caller, done)
        first = next(things, None)
        if facts is None or first is None:
            raise problems.NotFound(request.path)
        around = ListWrapper(interaction_members(facts, with_hashes=request.caller.sees_everything), "events")
        shown, links = _page(request, wanted, chain((first,), things))
        return TableContent(revision_table(wanted.images), shown, facts.last, around, links)

    return wanted, look


def _visible_revisions(caller: Caller, revisions: Iterator[Revision]) -> Iterator[Revision]:
    """The revisions of entities that a caller may see."""
    if not caller.sees_something:
        return iter(())
    may_see = visible_streams(caller)
    return (revision for revision in revisions if may_see is None or may_see(revision.event.stream))


def _xid_finder(view: View, caller: Caller, count: int) -> Callable[[Interaction], list[str]]:
    """Returns the xids of the first entities that an interaction changed, less those that the caller may not see."""
    may_see = visible_streams(caller)

    def find_xids(interaction: Interaction) -> list[str]:
        positions = range(interaction.first, min(interaction.first + count - 1, interaction.last) + 1)
        events = view.trail.events_at(positions)
        found = (events[position] for position in positions if position in events)
        return [event.xid for event in found if may_see is None or may_see(event.stream)]

    return find_xids


def _page(request: Request, wanted: AuditParams, revisions: Iterator[Revision]) -> tuple[Iterator[Revision], Headers]:
    """As many revisions as the request asks for, and the link to the next ones."""
    if wanted.limit is None:
        return revisions, []
    page = list(islice(revisions, wanted.limit + 1))
    shown = page[: wanted.limit]
    return iter(shown), [next_link(request, str(shown[-1].position))] if len(page) > wanted.limit else []

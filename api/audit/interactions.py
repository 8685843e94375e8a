"""`/-/interactions`: all events of one request, and the list of all requests that changed something.

A caller with roles at some places sees the part of an interaction there, without the hashes, which cover all of it; an
interaction without such a part does not exist for the caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from annals.api.audit.formats import ListWrapper
from annals.api.audit.queries import find_interaction
from annals.api.audit.representations import (
    INTERACTION_TABLE,
    PARTIAL_INTERACTION_TABLE,
    interaction_members,
    revision_table,
)
from annals.api.audit.request_params import parse_audit_params, requested_range
from annals.api.audit.responses import RequestedTable, TableContent, may_see_outside_tree, paginate
from annals.api.feeds.rights import check_reads_something, visible_streams
from annals.api.http.request import Request
from annals.api.registry.open_registry import Registry
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.projections.audit.trail import Revision
from annals.projections.entities.query import View

INTERACTIONS: Final = "interactions"
#: The accepted parameters of the list and of a single interaction.
LIST_PARAMS: Final = ("caller", "order", "after", "limit", "from", "until", "format")
ONE_PARAMS: Final = ("images", "format")


def interactions_table(registry: Registry, request: Request) -> RequestedTable:
    """The list, or one interaction. Raises: NotFound, ApiNotFound, Forbidden, BadRequest."""
    names = request.segments[2:]
    if len(names) > 1:
        raise problems.ApiNotFound()
    return _interaction_table(request, names[0]) if names else _list_table(registry, request)


def _list_table(registry: Registry, request: Request) -> RequestedTable:
    check_reads_something(request.caller)
    wanted = parse_audit_params(request.query, LIST_PARAMS)

    def look(full_view: View) -> TableContent:
        view = full_view.seen_by(request.caller)
        part = requested_range(wanted, view.log, registry.store.clock())
        found = paginate(
            request, wanted, view.trail.interaction_ends(part, wanted.caller, may_see_outside_tree(request.caller))
        )
        table = INTERACTION_TABLE if request.caller.sees_everything else PARTIAL_INTERACTION_TABLE
        return TableContent(table, view.trail.interactions_at(found.positions), view.position(), links=found.links)

    return wanted, look


def _interaction_table(request: Request, xregcorrelationid: str) -> RequestedTable:
    wanted = parse_audit_params(request.query, ONE_PARAMS)

    def look(view: View) -> TableContent:
        facts, done = find_interaction(view, xregcorrelationid, wanted) or (None, iter(()))
        things = _visible_revisions(request.caller, done)
        first = next(things, None)
        if facts is None or first is None:
            raise problems.NotFound(request.path)
        around = ListWrapper(interaction_members(facts, with_hashes=request.caller.sees_everything), "events")
        return TableContent(revision_table(wanted.images), chain((first,), things), facts.last, around)

    return wanted, look


def _visible_revisions(caller: Caller, revisions: Iterator[Revision]) -> Iterator[Revision]:
    """The revisions of entities that a caller may see."""
    if not caller.sees_something:
        return iter(())
    may_see = visible_streams(caller)
    return (revision for revision in revisions if may_see is None or may_see(revision.event.stream))

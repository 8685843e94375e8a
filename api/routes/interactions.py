"""`/-/interactions`: everything that one request did, and the list of all requests that did something.

The list is for callers who may read the whole registry. Others see of an interaction what it did in their Groups, and
nothing of one that did nothing there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.audit.answers import Listed, page, sees_apart, streamed
from api.audit.asked import asked, span
from api.audit.forms import Around
from api.audit.looks import interaction
from api.audit.shapes import INTERACTIONS as FACTS
from api.audit.shapes import interaction_members, revisions
from api.request import Request
from api.rules import options_of_reads
from api.wiring import Registry
from domain import problems
from domain import xid as xids
from domain.refusals import Forbidden
from domain.roles import Caller
from projections.audit.trail import Revision
from projections.entities.query import View

INTERACTIONS: Final = "interactions"
#: The parameters that the list and one interaction understand.
OF_LIST: Final = ("caller", "order", "after", "limit", "from", "until", "format")
OF_ONE: Final = ("images", "format")


class Interactions:
    """The surface of `/-/interactions`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: NotFound, ApiNotFound, Forbidden, BadRequest, NotAllowed."""
        if (options := options_of_reads(request)) is not None:
            return options
        names = request.segments[2:]
        if len(names) > 1:
            raise problems.ApiNotFound()
        return await (self._one(request, names[0]) if names else self._all(request))

    async def _all(self, request: Request) -> Answer:
        if request.caller.role is None:
            raise Forbidden(caller=request.caller.name)
        wanted = asked(request.query, OF_LIST)

        def look(view: View) -> Listed:
            part = span(wanted, view.log, self._registry.store.clock())
            found = page(request, wanted, view.trail.interactions(part, wanted.caller, sees_apart(request.caller)))
            return Listed(FACTS, view.trail.facts(found.positions), view.position(), links=found.links)

        return await streamed(self._registry, request, wanted, look)

    async def _one(self, request: Request, xregcorrelationid: str) -> Answer:
        wanted = asked(request.query, OF_ONE)

        def look(view: View) -> Listed:
            facts, done = interaction(view, xregcorrelationid, wanted) or (None, iter(()))
            things = _seen(request.caller, done)
            first = next(things, None)
            if facts is None or first is None:
                raise problems.NotFound(request.path)
            around = Around(interaction_members(facts), "events")
            return Listed(revisions(wanted.images), chain((first,), things), facts.last, around)

        return await streamed(self._registry, request, wanted, look)


def _seen(caller: Caller, found: Iterator[Revision]) -> Iterator[Revision]:
    """Those of entities that a caller may see."""
    apart = sees_apart(caller)
    return (
        revision
        for revision in found
        if caller.reads(revision.event.xid) and (apart or not xids.is_apart(revision.event.stream))
    )

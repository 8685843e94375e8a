"""`/-/history`: every revision of an entity, also of one that is gone, and of what is below it.

Whoever may read an entity may read who changed it, when and how.
"""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.audit.answers import Listed, page, sees_apart, streamed, subject
from api.audit.asked import asked
from api.audit.looks import history
from api.audit.shapes import revisions
from api.request import Request
from api.rules import options_of_reads
from api.wiring import Registry
from projections.entities.query import View

HISTORY: Final = "history"
#: The parameters that are understood.
PARAMETERS: Final = ("images", "below", "order", "after", "limit", "from", "until", "format")


class History:
    """The surface of `/-/history`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: NotFound for what never existed, Forbidden, BadRequest, NotAllowed."""
        if (options := options_of_reads(request)) is not None:
            return options
        xid, wanted = subject(request), asked(request.query, PARAMETERS)
        apart = sees_apart(request.caller)

        def look(view: View) -> Listed:
            found = page(request, wanted, history(view, xid, wanted, self._registry.store.clock(), apart))
            things = view.trail.revisions(found.positions, before="before" in wanted.images)
            return Listed(revisions(wanted.images), things, view.position(), links=found.links)

        return await streamed(self._registry, request, wanted, look)

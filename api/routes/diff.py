"""`/-/diff`: two moments compared, for an entity and what is below it."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.audit.answers import Listed, sees_apart, streamed, subject
from api.audit.asked import asked
from api.audit.forms import Around
from api.audit.looks import difference
from api.audit.shapes import DIFFERENCES, moment_members
from api.request import Request
from api.rules import options_of_reads
from api.wiring import Registry
from domain import xid as xids
from projections.entities.query import View

DIFF: Final = "diff"
#: The parameters that are understood.
PARAMETERS: Final = ("from", "to", "below", "format")


class Diff:
    """The surface of `/-/diff`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: NotFound for what never existed, Forbidden, BadRequest, NotAllowed."""
        if (options := options_of_reads(request)) is not None:
            return options
        xid, wanted = subject(request), asked(request.query, PARAMETERS)

        def look(view: View) -> Listed:
            before, after, found = difference(view, xid, wanted, self._registry.store.clock())
            if not sees_apart(request.caller):
                found = (each for each in found if not xids.is_apart(xids.stream(each.xid)))
            around = Around({"xid": xid, "from": moment_members(before), "to": moment_members(after)}, "entities")
            return Listed(DIFFERENCES, found, view.position(), around)

        return await streamed(self._registry, request, wanted, look)

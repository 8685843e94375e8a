"""`/-/hash`: hashes of parts of the tree, now or at any moment, so that two registries find where they differ."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.audit.answers import Listed, streamed, subject
from api.audit.asked import asked
from api.audit.forms import Around
from api.audit.hashes import PARAMETERS, TABLE, hashed, wanted
from api.feeds.asked import parameters
from api.request import Request
from api.rules import options_of_reads
from api.wiring import Registry
from domain import problems
from domain import xid as xids
from projections.entities.query import View

HASH: Final = "hash"


class Hash:
    """The surface of `/-/hash`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: Forbidden, NotFound for what the caller may not see, BadRequest, NotAllowed."""
        if (options := options_of_reads(request)) is not None:
            return options
        xid, form = subject(request), asked(request.query, ("format",))
        if "\0" in xid or xids.is_apart(xids.stream(xid) + "/"):
            raise problems.NotFound(request.path)
        choice = wanted(parameters(request, PARAMETERS), xid)

        def look(view: View) -> Listed:
            found = hashed(view, xid, choice, self._registry.store.clock())
            return Listed(TABLE, found.parts, found.position, Around(found.members, "parts"))

        return await streamed(self._registry, request, form, look)

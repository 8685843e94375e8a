"""`/-/resolved`: a message with all that its base messages give it, and all messages of an endpoint or a group.

It is worked out as it is read, of now or of any moment (`asof`), so it is always true to what is stored (MS-15, EP-43).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from starlette.types import Receive

from api import conditional
from api.answer import JSON, Answer
from api.feeds.asked import parameters, single
from api.messages import is_group, message_of, messages_of, place
from api.moments import Moments, Then
from api.problem import root_link
from api.request import Request
from api.rules import check_caller, options_of_reads
from api.wiring import Registry
from domain import problems
from domain.jsontext import dumps
from projections.messages import StoredMessages

RESOLVED: Final = "resolved"

_ASOF: Final = "asof"
#: Segments before the path of an entity.
_ABOVE: Final = 2


class Resolved:
    """The surface of `/-/resolved`."""

    def __init__(self, registry: Registry) -> None:
        self._readers = registry.readers
        self._latest = registry.latest
        self._moments = Moments(registry.readers, self._latest, registry.store.clock)

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: NotFound, BadRequest for what has no messages, Forbidden, NotAllowed."""
        if (options := options_of_reads(request)) is not None:
            return options
        check_caller(replace(request, segments=request.segments[_ABOVE:]))
        asof = single(parameters(request, {_ASOF}), _ASOF)
        if asof is None:
            return await asyncio.to_thread(self._look, request, None)
        then = await self._moments.find(asof)
        if then.position == 0:
            raise problems.NotFound(request.path)
        try:
            return then.told(await asyncio.to_thread(self._look, request, then), request)
        except conditional.Unchanged as unchanged:
            return then.told(conditional.not_modified(request, unchanged), request)

    def _look(self, request: Request, then: Then | None) -> Answer:
        with self._readers.view() as now:
            view = then.seen(now) if then else now
            definitions = then.definitions if then else self._latest.current(view)
            tag = conditional.log_tag(view.position(), request, definitions.positions)
            conditional.check(request, tag)
            target = place(request.segments[_ABOVE:], definitions)
            messages = StoredMessages(view, request.caller.reads)
            found = messages_of(target, view, messages) if is_group(target) else message_of(target, messages)
        return conditional.tagged(Answer(200, [JSON, root_link(request.base)], dumps(found)), tag)

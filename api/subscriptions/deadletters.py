"""`/subscriptions/{id}/deadletters`: what could not be delivered (SUB-509, SUB-831)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from starlette.types import Receive

from api.answer import Answer
from api.feeds.asked import parameters, refused, single
from api.request import Request
from api.subscriptions.parts import Parts, check_writer, existing, xid
from api.subscriptions.ports import Members
from api.subscriptions.shown import answer
from domain import problems
from domain.commands import ControlSubscription
from domain.subscriptions.subscription import Subscription
from projections.subscriptions.sequence import parsed, position_of

#: Dead letters of a page, and at most.
PAGE: Final = 100
MOST: Final = 1000


class DeadLetters:
    """Answers about dead letters."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def list(self, request: Request, receive: Receive) -> Answer:
        """A page of them, in their order. Raises: NotFound, BadRequest."""
        return await asyncio.to_thread(self._list, request)

    async def one(self, request: Request, receive: Receive) -> Answer:
        """One of them. Raises: NotFound."""
        return answer(request, 200, await asyncio.to_thread(self._found, request))

    async def redeliver(self, request: Request, receive: Receive) -> Answer:
        """202: it gets a fresh set of attempts. Raises: NotFound, Forbidden."""
        recorded, _ = await self._recorded(request, "redeliver", self._parts.deliveries.redeliver)
        status = await asyncio.to_thread(lambda: self._parts.deliveries.status(self._subscription(request)))
        return answer(request, 202, status, xregcorrelationid=recorded)

    async def discard(self, request: Request, receive: Receive) -> Answer:
        """200 with what it was. Raises: NotFound, Forbidden."""
        recorded, letter = await self._recorded(request, "discard", self._parts.deliveries.discard)
        return answer(request, 200, letter, xregcorrelationid=recorded)

    async def _recorded(
        self, request: Request, name: str, effect: Callable[[str, str], None]
    ) -> tuple[str | None, Members]:
        letter = await asyncio.to_thread(self._found, request)
        check_writer(request.caller)
        parameters(request, ())
        id, sequence = request.segments[1], request.segments[3]
        command = ControlSubscription(xid(id), name, {"sequence": sequence})
        recorded = await asyncio.wrap_future(self._parts.registry.road.submit(command, request.caller))
        await asyncio.to_thread(effect, id, sequence)
        return recorded.xregcorrelationid, letter

    def _list(self, request: Request) -> Answer:
        given = parameters(request, ("after", "limit"))
        limit = _limit(single(given, "limit"))
        subscription = self._subscription(request)
        after = self._after(single(given, "after"))
        found = list(self._parts.deliveries.deadletters(subscription.id, after, limit + 1))
        links = [_next(request, limit, found[limit - 1])] if len(found) > limit else []
        return answer(request, 200, found[:limit], [(b"cache-control", b"no-store"), *links])

    def _after(self, value: str | None) -> str:
        """The sequence that a page begins behind, empty for the first one. Raises: BadRequest."""
        if value is None:
            return ""
        if (found := parsed(value)) is None:
            raise refused("after", f"{value!r} is no sequence of a dead letter")
        if position_of(found) > (head := self._parts.registry.readers.quick().log.head().last):
            raise refused("after", f"{value!r} is of no event yet, the log ends at position {head}")
        return value

    def _found(self, request: Request) -> Members:
        subscription = self._subscription(request)
        letter = self._parts.deliveries.deadletter(subscription.id, request.segments[3])
        if letter is None:
            raise problems.NotFound(f"{xid(subscription.id)}/deadletters/{request.segments[3]}")
        return letter

    def _subscription(self, request: Request) -> Subscription:
        return existing(self._parts.registry.readers.quick(), request.segments[1], request.caller)


def _limit(value: str | None) -> int:
    if value is None:
        return PAGE
    if not (value.isascii() and value.isdecimal() and len(value) < 5 and 0 < int(value) <= MOST):
        raise refused("limit", f"{value!r} is no number from 1 to {MOST}")
    return int(value)


def _next(request: Request, limit: int, last: Any) -> tuple[bytes, bytes]:
    path = f"{xid(request.segments[1])}/deadletters?limit={limit}&after={last['sequence']}"
    return b"link", f"<{request.base}{path}>;rel=next".encode("latin-1", "replace")

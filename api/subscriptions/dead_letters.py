"""`/subscriptions/{id}/deadletters`: events that could not be delivered (SUB-509, SUB-831)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from starlette.types import Receive

from annals.api.feeds.rights import visible_subjects
from annals.api.http.next_link import next_link
from annals.api.http.query_params import invalid_param, parse_number, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.subscriptions.context import (
    SubscriptionApiContext,
    check_writer,
    find_subscription,
    subscription_xid,
)
from annals.api.subscriptions.ports import JsonObject
from annals.api.subscriptions.responses import json_response
from annals.domain.decisions.commands import ControlSubscription
from annals.domain.errors import problems
from annals.domain.subscriptions.subscription import Subscription
from annals.projections.log.answer_position import note_position
from annals.projections.subscriptions.sequence import parse_sequence, position_of

#: Default and maximum number of dead letters in a page.
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000


class DeadLetterHandler:
    """Handles requests about dead letters."""

    def __init__(self, context: SubscriptionApiContext) -> None:
        self._context = context

    async def list(self, request: Request, receive: Receive) -> Response:
        """A page of dead letters, in their order. Raises: NotFound, BadRequest."""
        return await asyncio.to_thread(self._list_page, request)

    async def read_one(self, request: Request, receive: Receive) -> Response:
        """One dead letter. Raises: NotFound."""
        return json_response(request, 200, await asyncio.to_thread(self._find, request))

    async def redeliver(self, request: Request, receive: Receive) -> Response:
        """202: the dead letter receives a fresh set of attempts. Raises: NotFound, Forbidden."""
        recorded, _ = await self._record(request, "redeliver", self._context.deliveries.redeliver)
        status = await asyncio.to_thread(lambda: self._context.deliveries.status(self._find_subscription(request)))
        return json_response(request, 202, status, xregcorrelationid=recorded)

    async def discard(self, request: Request, receive: Receive) -> Response:
        """200 with the discarded dead letter. Raises: NotFound, Forbidden."""
        recorded, dead_letter = await self._record(request, "discard", self._context.deliveries.discard)
        return json_response(request, 200, dead_letter, xregcorrelationid=recorded)

    async def _record(
        self, request: Request, name: str, apply_action: Callable[[str, str], None]
    ) -> tuple[str | None, JsonObject]:
        dead_letter = await asyncio.to_thread(self._find, request)
        check_writer(request.caller)
        query_params(request, ())
        id, sequence = request.segments[1], request.segments[3]
        command = ControlSubscription(subscription_xid(id), name, {"sequence": sequence})
        recorded = await asyncio.wrap_future(self._context.registry.command_bus.submit(command, request.caller))
        note_position(recorded.position)
        await asyncio.to_thread(apply_action, id, sequence)
        return recorded.xregcorrelationid, dead_letter

    def _list_page(self, request: Request) -> Response:
        parameters = query_params(request, ("after", "limit"))
        limit = parse_number("limit", single_value(parameters, "limit"), 1, MAX_LIMIT) or DEFAULT_LIMIT
        subscription = self._find_subscription(request)
        after_sequence = self._parse_after(single_value(parameters, "after"))
        deliveries, can_read = self._context.deliveries, visible_subjects(request.caller)
        dead_letters = deliveries.deadletters(subscription.id, after_sequence, limit + 1, can_read)
        links = [next_link(request, dead_letters[limit - 1]["sequence"])] if len(dead_letters) > limit else []
        return json_response(request, 200, dead_letters[:limit], [(b"cache-control", b"no-store"), *links])

    def _parse_after(self, value: str | None) -> str:
        """The sequence after which a page begins; empty for the first page. Raises: BadRequest."""
        if value is None:
            return ""
        if (sequence := parse_sequence(value)) is None:
            raise invalid_param("after", f"{value!r} is not the sequence of a dead letter")
        if position_of(sequence) > (head := self._context.registry.readers.quick_view().log.head().last):
            raise invalid_param("after", f"{value!r} is after the last event; the log ends at position {head}")
        return value

    def _find(self, request: Request) -> JsonObject:
        subscription = self._find_subscription(request)
        id, sequence = subscription.id, request.segments[3]
        dead_letter = self._context.deliveries.deadletter(id, sequence, visible_subjects(request.caller))
        if dead_letter is None:
            raise problems.NotFound(f"{subscription_xid(id)}/deadletters/{sequence}")
        return dead_letter

    def _find_subscription(self, request: Request) -> Subscription:
        return find_subscription(self._context.registry.readers.latest_view(), request.segments[1], request.caller)

"""`/subscriptions/{id}/attempts`: what became of the last attempts, and how many there were in each hour (UI-111)."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from annals.api.feeds.rights import visible_subjects
from annals.api.http.next_link import next_link
from annals.api.http.query_params import parse_number, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.subscriptions.context import SubscriptionApiContext, find_subscription
from annals.api.subscriptions.responses import json_response

#: Default and maximum number of attempts in a page.
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1000
_MAX_NUMBER: Final = 1 << 62


class AttemptsHandler:
    """Handles requests about attempts."""

    def __init__(self, context: SubscriptionApiContext) -> None:
        self._context = context

    async def list(self, request: Request, receive: Receive) -> Response:
        """A page of attempts, the newest first. Raises: NotFound, BadRequest."""
        return await asyncio.to_thread(self._list_page, request)

    def _list_page(self, request: Request) -> Response:
        parameters = query_params(request, ("after", "limit"))
        limit = parse_number("limit", single_value(parameters, "limit"), 1, MAX_LIMIT) or DEFAULT_LIMIT
        before = parse_number("after", single_value(parameters, "after"), 1, _MAX_NUMBER)
        subscription = find_subscription(
            self._context.registry.readers.latest_view(), request.segments[1], request.caller
        )
        deliveries = self._context.deliveries
        attempts = deliveries.attempts(subscription.id, before, limit + 1, visible_subjects(request.caller))
        links = [next_link(request, str(attempts[limit - 1]["number"]))] if len(attempts) > limit else []
        document = {"attempts": attempts[:limit], "hours": deliveries.hours(subscription.id)}
        return json_response(request, 200, document, [(b"cache-control", b"no-store"), *links])

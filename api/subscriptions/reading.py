"""GET of subscriptions: all that a caller may see, or one of them, now or as of a past moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from email.utils import format_datetime
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from starlette.types import Receive

from api.http import conditional
from api.http.asof import url_without_asof
from api.http.query_params import invalid_param, query_params, single_value
from api.http.request import Request
from api.http.response import Headers, Response
from api.subscriptions.context import SubscriptionApiContext, can_see, find_subscription
from api.subscriptions.request_params import has_entity_tag
from api.subscriptions.responses import entity_tag, json_response, subscription_document, subscription_headers
from commands.store.clock import parse_time
from commands.store.hashes import NO_INTERACTION
from domain.access.roles import Caller
from domain.decisions.world import Secret
from domain.subscriptions.subscription import Subscription
from projections.entities.query import View
from projections.subscriptions.state.subscriptions import CreatedSubscription

#: Maximum number of subscriptions in a page.
MAX_LIMIT: Final = 1000
_ASOF: Final = "asof"
_PARAMETERS: Final = ("protocol", "source", "state", "limit", "after", _ASOF)


class _SubscriptionSnapshot(NamedTuple):
    """The view that answers a request, and headers that name its moment. live: whether the moment is now."""

    view: View
    live: bool
    headers: Headers


class SubscriptionReadHandler:
    """Handles GET requests."""

    def __init__(self, parts: SubscriptionApiContext) -> None:
        self._parts = parts

    async def list(self, request: Request, receive: Receive) -> Response:
        """All subscriptions that the caller may see, in order of creation (SUB-505). Raises: BadRequest."""
        return await asyncio.to_thread(self._list, request)

    async def read_one(self, request: Request, receive: Receive) -> Response:
        """One subscription. Raises: NotFound, BadRequest, NotModified."""
        return await asyncio.to_thread(self._read_one, request)

    def render(self, subscription: Subscription, view: View, caller: Caller, *, live: bool = True) -> dict[str, Any]:
        """The response body of a subscription. live: whether it includes the delivery status."""
        vault, stored = self._parts.registry.store.vault, view.subscriptions

        def reveal(secret: Secret) -> str | None:
            return stored.reveal(vault, secret)

        members = subscription_document(subscription, caller, reveal)
        return members | {"status": self._parts.deliveries.status(subscription)} if live else members

    def _read_one(self, request: Request) -> Response:
        asof = single_value(query_params(request, (_ASOF,)), _ASOF)
        then = self._then(request, asof)
        found = find_subscription(then.view, request.segments[1], request.caller)
        current = entity_tag(found, request.caller)
        if has_entity_tag(request, current):
            raise conditional.NotModified(current)
        members = self.render(found, then.view, request.caller, live=then.live)
        return json_response(request, 200, members, [*subscription_headers(found, request.caller), *then.headers])

    def _list(self, request: Request) -> Response:
        given = query_params(request, _PARAMETERS)
        named = {name: single_value(given, name) for name in _PARAMETERS}
        limit = _number("limit", named["limit"], 1, MAX_LIMIT)
        then = self._then(request, named[_ASOF])
        after = _number("after", named["after"], 0, (1 << 63) - 1) or 0
        found = list(islice(self._wanted(then, request.caller, named, after), limit + 1 if limit else None))
        more = limit is not None and len(found) > limit
        shown = [self.render(each.subscription, then.view, request.caller, live=then.live) for each in found[:limit]]
        links = [_next(request, named, found[limit - 1].born)] if more and limit else []
        return json_response(request, 200, shown, [(b"cache-control", b"no-cache"), *links, *then.headers])

    def _wanted(
        self, then: _SubscriptionSnapshot, caller: Caller, named: Mapping[str, str | None], after: int
    ) -> Iterator[CreatedSubscription]:
        for found in then.view.subscriptions.all(after):
            subscription = found.subscription
            if not can_see(caller, subscription):
                continue
            if any(named[name] not in (None, subscription.attributes.get(name)) for name in ("protocol", "source")):
                continue
            if named["state"] not in (None, self._parts.deliveries.status(subscription).get("state")):
                continue
            yield found

    def _then(self, request: Request, asof: str | None) -> _SubscriptionSnapshot:
        """The snapshot that answers a request. Raises: BadRequest."""
        view = self._parts.registry.readers.quick_view()
        if asof is None:
            return _SubscriptionSnapshot(view, True, [])
        moment = view.log.as_of(asof, self._parts.registry.store.clock())
        links = [(b"link", f"<{url_without_asof(request)}>;rel=original".encode("latin-1", "replace"))]
        dated = [] if moment is NO_INTERACTION else [_dated(moment.time)]
        return _SubscriptionSnapshot(view.as_of(moment.last), False, [*dated, *links])


def _dated(time: str) -> tuple[bytes, bytes]:
    return b"memento-datetime", format_datetime(parse_time(time), usegmt=True).encode()


def _number(name: str, value: str | None, low: int, high: int) -> int | None:
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) < 20 and low <= int(value) <= high):
        raise invalid_param(name, f"{value!r} is not a number from {low} to {high}")
    return int(value)


def _next(request: Request, named: Mapping[str, str | None], after: int) -> tuple[bytes, bytes]:
    kept = {name: value for name, value in named.items() if value is not None} | {"after": str(after)}
    return b"link", f"<{request.base}/subscriptions?{urlencode(kept)}>;rel=next".encode("latin-1", "replace")

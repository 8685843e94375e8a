"""GET of subscriptions: all that a caller may see, or one of them, now or as of a past moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from email.utils import format_datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from starlette.types import Receive

from annals.api.http import conditional
from annals.api.http.asof import url_without_asof
from annals.api.http.next_link import next_link
from annals.api.http.query_params import invalid_param, parse_number, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.subscriptions.context import SubscriptionApiContext, can_see, find_subscription
from annals.api.subscriptions.request_params import has_entity_tag
from annals.api.subscriptions.responses import entity_tag, json_response, subscription_document, subscription_headers
from annals.commands.store.clock import parse_time
from annals.commands.store.hashes import NO_INTERACTION
from annals.domain.access.roles import Caller
from annals.domain.decisions.world import Secret
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.subscriptions.subscription_document import normalized_source
from annals.projections.entities.view import View
from annals.projections.log.answer_position import note_position
from annals.projections.log.reader import MAX_POSITION
from annals.projections.subscriptions.state.delivery_record import STATES
from annals.projections.subscriptions.state.subscriptions import CreatedSubscription

#: Maximum number of subscriptions in a page.
MAX_LIMIT: Final = 1000
_ASOF: Final = "asof"
_PARAMETERS: Final = ("protocol", "source", "state", "limit", "after", _ASOF)


class _SubscriptionSnapshot(NamedTuple):
    """The view that answers a request, and headers that name its moment. is_live: whether the moment is now."""

    view: View
    is_live: bool
    headers: Headers


class SubscriptionReadHandler:
    """Handles GET requests."""

    def __init__(self, context: SubscriptionApiContext) -> None:
        self._context = context

    async def list(self, request: Request, receive: Receive) -> Response:
        """All subscriptions that the caller may see, in order of creation (SUB-505). Raises: BadRequest."""
        return await asyncio.to_thread(self._list_page, request)

    async def read_one(self, request: Request, receive: Receive) -> Response:
        """One subscription. Raises: NotFound, BadRequest, NotModified."""
        return await asyncio.to_thread(self._read_one, request)

    def render(
        self, subscription: Subscription, view: View, caller: Caller, *, with_status: bool = True
    ) -> dict[str, Any]:
        """The response body of a subscription; `with_status` adds the status of its deliveries."""
        vault, stored_subscriptions = self._context.registry.store.vault, view.subscriptions

        def reveal(secret: Secret) -> str | None:
            return stored_subscriptions.reveal(vault, secret)

        members = subscription_document(subscription, caller, reveal)
        return members | {"status": self._context.deliveries.status(subscription)} if with_status else members

    def _read_one(self, request: Request) -> Response:
        asof = single_value(query_params(request, (_ASOF,)), _ASOF)
        snapshot = self._snapshot(request, asof)
        subscription = find_subscription(snapshot.view, request.segments[1], request.caller)
        tag = entity_tag(subscription, request.caller)
        if has_entity_tag(request, tag):
            raise conditional.NotModified(tag)
        members = self.render(subscription, snapshot.view, request.caller, with_status=snapshot.is_live)
        return json_response(
            request, 200, members, [*subscription_headers(subscription, request.caller), *snapshot.headers]
        )

    def _list_page(self, request: Request) -> Response:
        parameters = query_params(request, _PARAMETERS)
        values = {name: single_value(parameters, name) for name in _PARAMETERS}
        if source := values["source"]:
            values["source"] = normalized_source(source, self._context.read_support())
        if values["state"] not in (None, *STATES):
            raise invalid_param("state", f"it takes one of: {', '.join(STATES)}")
        limit = parse_number("limit", values["limit"], 1, MAX_LIMIT)
        snapshot = self._snapshot(request, values[_ASOF])
        after_position = parse_number("after", values["after"], 0, MAX_POSITION) or 0
        entries = list(
            islice(
                self._matching_subscriptions(snapshot, request.caller, values, after_position),
                limit + 1 if limit else None,
            )
        )
        has_more = limit is not None and len(entries) > limit
        documents = [
            self.render(entry.subscription, snapshot.view, request.caller, with_status=snapshot.is_live)
            for entry in entries[:limit]
        ]
        links = [next_link(request, str(entries[limit - 1].born))] if has_more and limit else []
        return json_response(request, 200, documents, [(b"cache-control", b"no-cache"), *links, *snapshot.headers])

    def _matching_subscriptions(
        self, snapshot: _SubscriptionSnapshot, caller: Caller, values: Mapping[str, str | None], after_position: int
    ) -> Iterator[CreatedSubscription]:
        for entry in snapshot.view.subscriptions.all(after_position):
            subscription = entry.subscription
            if not can_see(caller, subscription):
                continue
            if any(values[name] not in (None, subscription.attributes.get(name)) for name in ("protocol", "source")):
                continue
            if values["state"] not in (None, self._context.deliveries.status(subscription).get("state")):
                continue
            yield entry

    def _snapshot(self, request: Request, asof: str | None) -> _SubscriptionSnapshot:
        """The snapshot that answers a request. Raises: BadRequest."""
        view = self._context.registry.readers.latest_view()
        if asof is None:
            return _SubscriptionSnapshot(view, True, [])
        interaction = view.log.as_of(asof, self._context.registry.store.clock())
        note_position(interaction.last)
        links = [(b"link", f"<{url_without_asof(request)}>;rel=original".encode("latin-1", "replace"))]
        datetime_headers = [] if interaction is NO_INTERACTION else [_memento_header(interaction.time)]
        return _SubscriptionSnapshot(view.as_of(interaction.last), False, [*datetime_headers, *links])


def _memento_header(time: str) -> tuple[bytes, bytes]:
    return b"memento-datetime", format_datetime(parse_time(time), usegmt=True).encode()

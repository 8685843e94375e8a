"""`/-/events`: a feed of CloudEvents, of the registry and of the legacy APIs.

Spec: xRegistry Events 1.0-rc4; CloudEvents 1.0, "JSON Batch Format".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.types import Receive

from annals.api.feeds.feeds import Feeds
from annals.api.feeds.formats import EVENT_FORMATS, negotiate_format
from annals.api.feeds.request_params import parse_feed_params
from annals.api.feeds.rights import check_reads_something, visible_subjects
from annals.api.feeds.selection import SELECTION_PARAMS, parse_selection, selected_families
from annals.api.feeds.sources import EventFeedSource
from annals.api.http.methods import read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.access.roles import can_read_everything
from annals.domain.errors import problems
from annals.projections.events.event_families import EventFamily

EVENTS: Final = "events"


class EventFeedRoutes:
    """The surface of `/-/events`."""

    def __init__(self, feeds: Feeds, families: Sequence[EventFamily]) -> None:
        self._feeds = feeds
        self._families = families

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: NotAcceptable, BadRequest, Forbidden, ApiNotFound."""
        if len(request.segments) > 2:
            raise problems.ApiNotFound()
        if (options := read_only_options(request)) is not None:
            return options
        check_reads_something(request.caller)
        may_see = visible_subjects(request.caller)
        feed_format = negotiate_format(request.header(b"accept"), EVENT_FORMATS)
        feed_params = parse_feed_params(request, SELECTION_PARAMS)
        message_tests = [] if may_see is can_read_everything else [lambda message: may_see(message.xid)]
        families = selected_families(feed_params.values, self._families)
        selected = tuple(sorted((name, tuple(values)) for name, values in feed_params.values.items()))
        source = EventFeedSource(
            self._feeds.log, parse_selection(feed_params.values, *message_tests), families, (EVENTS, selected, may_see)
        )
        return await self._feeds.answer(request, receive, feed_params, feed_format, source)

"""`/-/events`: what has happened as a feed of CloudEvents, the registry's own or those of the older APIs.

Spec: xRegistry Events 1.0-rc4; CloudEvents 1.0, "JSON Batch Format".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.types import Receive

from api.answer import Answer
from api.feeds.asked import asked
from api.feeds.choosing import CHOOSING, choice, chosen
from api.feeds.delivery import Feeds
from api.feeds.forms import FORMS_OF_EVENTS, choose
from api.feeds.rights import subjects_of
from api.feeds.sources import EventsSource
from api.request import Request
from api.rules import options_of_reads
from domain import problems
from projections.families import Family

EVENTS: Final = "events"


class EventFeed:
    """The surface of `/-/events`."""

    def __init__(self, feeds: Feeds, families: Sequence[Family]) -> None:
        self._feeds = feeds
        self._families = families

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: NotAcceptable, BadRequest, Forbidden, ApiNotFound."""
        if len(request.segments) > 2:
            raise problems.ApiNotFound()
        if (options := options_of_reads(request)) is not None:
            return options
        sees = subjects_of(request.caller)
        form = choose(request.header(b"accept"), FORMS_OF_EVENTS)
        wanted = asked(request, CHOOSING)
        tests = [lambda message: sees(message.xid)] if sees else []
        families = chosen(wanted.given, self._families)
        source = EventsSource(self._feeds.log, choice(wanted.given, *tests), families)
        return await self._feeds.answer(request, receive, wanted, form, source)

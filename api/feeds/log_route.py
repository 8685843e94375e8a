"""`/-/log`: the log in order, and its head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.types import Receive

from api.feeds.feeds import Feeds
from api.feeds.formats import LOG_FORMATS, negotiate_format
from api.feeds.request_params import parse_feed_params
from api.feeds.rights import check_reads_everything, visible_streams
from api.feeds.sources import LogFeedSource
from api.http import conditional
from api.http.json_bodies import json_response
from api.http.methods import read_only_options
from api.http.query_params import is_switched_on, query_params, single_value
from api.http.request import Request
from api.http.response import Response
from commands.store.hashes import NO_INTERACTION, Interaction
from domain.errors import problems

LOG: Final = "log"
HEAD: Final = "head"
UPSTREAM: Final = "upstream"

_ASOF: Final = "asof"
_DOCUMENTS: Final = "documents"


class LogFeedRoutes:
    """The surface of `/-/log`, `/-/log/head` and `/-/log/upstream`. upstream: returns the body of the last one."""

    def __init__(self, feeds: Feeds, upstream: Callable[[], Mapping[str, Any]]) -> None:
        self._feeds = feeds
        self._upstream = upstream

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: NotAcceptable, BadRequest, Forbidden, ApiNotFound."""
        below = request.segments[2:]
        if below not in ((), (HEAD,), (UPSTREAM,)):
            raise problems.ApiNotFound()
        if (options := read_only_options(request)) is not None:
            return options
        check_reads_everything(request.caller)
        if below:
            return await (self._head if below == (HEAD,) else self._followed)(request)
        form = negotiate_format(request.header(b"accept"), LOG_FORMATS)
        wanted = parse_feed_params(request, (_DOCUMENTS,))
        documents = is_switched_on(wanted.values, _DOCUMENTS)
        source = LogFeedSource(self._feeds.log, visible_streams(request.caller), documents=documents)
        return await self._feeds.answer(request, receive, wanted, form, source)

    async def _head(self, request: Request) -> Response:
        """The head of the log, now or as of a moment.

        The position alone determines the body, so it makes the entity tag.
        """
        moment = single_value(query_params(request, (_ASOF,)), _ASOF)
        ended = await self._feeds.run(self._feeds.head, moment)
        tag = conditional.log_tag(ended.last, request, (0, 0))
        conditional.check_conditions(request, tag)
        return conditional.add_entity_tag(json_response(request, 200, _shown(ended)), tag)

    async def _followed(self, request: Request) -> Response:
        """The id of this registry and of the registries that it follows, for a registry that wants to follow it."""
        query_params(request, ())
        found = await self._feeds.run(self._upstream)
        return json_response(request, 200, found, [(b"cache-control", b"no-store")])


def _shown(ended: Interaction) -> dict[str, object]:
    named = {} if ended is NO_INTERACTION else {"time": ended.time, "xregcorrelationid": ended.xregcorrelationid}
    return {"position": ended.last, **named, "chain": ended.chain.hex(), "state": ended.state.hex()}

"""`/-/log`: the log in order, and its head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.types import Receive

from annals.api.feeds.feeds import Feeds
from annals.api.feeds.formats import LOG_FORMATS, negotiate_format
from annals.api.feeds.request_params import parse_feed_params
from annals.api.feeds.rights import check_reads_everything, check_reads_something, visible_streams
from annals.api.feeds.sources import LogFeedSource
from annals.api.http import conditional
from annals.api.http.json_bodies import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.query_params import is_switched_on, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.commands.store.hashes import NO_INTERACTION, Interaction
from annals.domain.access.roles import Caller
from annals.domain.errors import problems

LOG: Final = "log"
HEAD: Final = "head"
UPSTREAM: Final = "upstream"

_ASOF: Final = "asof"
_DOCUMENTS: Final = "documents"


class LogFeedRoutes:
    """The surface of `/-/log`, `/-/log/head` and `/-/log/upstream`. read_upstream: returns the body of the last one."""

    def __init__(self, feeds: Feeds, read_upstream: Callable[[], Mapping[str, Any]]) -> None:
        self._feeds = feeds
        self._read_upstream = read_upstream

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: NotAcceptable, BadRequest, Forbidden, ApiNotFound."""
        subpath = request.segments[2:]
        if subpath not in ((), (HEAD,), (UPSTREAM,)):
            raise problems.ApiNotFound()
        if (options := read_only_options(request)) is not None:
            return options
        check_reads_something(request.caller)
        if subpath:
            return await (self._head if subpath == (HEAD,) else self._upstream_response)(request)
        feed_format = negotiate_format(request.header(b"accept"), LOG_FORMATS)
        feed_params = parse_feed_params(request, (_DOCUMENTS,))
        documents = is_switched_on(feed_params.values, _DOCUMENTS)
        caller = request.caller
        source = LogFeedSource(
            self._feeds.log, visible_streams(caller), documents=documents, is_partial=not caller.sees_everything
        )
        return await self._feeds.answer(request, receive, feed_params, feed_format, source)

    async def _head(self, request: Request) -> Response:
        """The head of the log, now or as of a moment.

        The position and the caller's places alone determine the body, so they make the entity tag.
        """
        asof = single_value(query_params(request, (_ASOF,)), _ASOF)
        interaction = await self._feeds.run(self._feeds.head, asof)
        tag = conditional.log_tag(interaction.last, request, (0, 0))
        conditional.check_conditions(request, tag)
        return conditional.add_entity_tag(json_response(request, 200, _head_members(interaction, request.caller)), tag)

    async def _upstream_response(self, request: Request) -> Response:
        """The id of this registry and of the registries that it follows, for a registry that wants to follow it."""
        check_reads_everything(request.caller)
        query_params(request, ())
        upstream = await self._feeds.run(self._read_upstream)
        return json_response(request, 200, upstream, [(b"cache-control", b"no-store")])


def _head_members(interaction: Interaction, caller: Caller) -> dict[str, object]:
    """The members of the head.

    The hashes cover all of the registry, and the interaction may be one of hidden entities only, so who does not see
    everything gets neither (ACC-74).
    """
    members: dict[str, object] = {"position": interaction.last}
    if interaction is not NO_INTERACTION:
        members["time"] = interaction.time
    if not caller.sees_everything:
        return members
    if interaction is not NO_INTERACTION:
        members["xregcorrelationid"] = interaction.xregcorrelationid
    return members | {"chain": interaction.chain.hex(), "state": interaction.state.hex()}

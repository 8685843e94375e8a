"""`/-/log`: the log in order, and its head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.types import Receive

from api import conditional
from api.answer import JSON, Answer
from api.feeds.asked import asked, parameters, single, switched
from api.feeds.delivery import Feeds
from api.feeds.forms import FORMS_OF_LOG, choose
from api.feeds.rights import reads_everything, streams_of
from api.feeds.sources import LogSource
from api.problem import root_link
from api.request import Request
from api.rules import options_of_reads
from commands.proof import START, Interaction
from domain import problems
from domain.jsontext import dumps

LOG: Final = "log"
HEAD: Final = "head"
UPSTREAM: Final = "upstream"

_ASOF: Final = "asof"
_DOCUMENTS: Final = "documents"


class LogFeed:
    """The surface of `/-/log`, `/-/log/head` and `/-/log/upstream`. upstream: gives the answer of the last one."""

    def __init__(self, feeds: Feeds, upstream: Callable[[], Mapping[str, Any]]) -> None:
        self._feeds = feeds
        self._upstream = upstream

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: NotAcceptable, BadRequest, Forbidden, ApiNotFound."""
        below = request.segments[2:]
        if below not in ((), (HEAD,), (UPSTREAM,)):
            raise problems.ApiNotFound()
        if (options := options_of_reads(request)) is not None:
            return options
        reads_everything(request.caller)
        if below:
            return await (self._head if below == (HEAD,) else self._followed)(request)
        form = choose(request.header(b"accept"), FORMS_OF_LOG)
        wanted = asked(request, (_DOCUMENTS,))
        documents = switched(wanted.given, _DOCUMENTS)
        source = LogSource(self._feeds.log, streams_of(request.caller), documents=documents)
        return await self._feeds.answer(request, receive, wanted, form, source)

    async def _head(self, request: Request) -> Answer:
        """How the log stands, or stood. Its position tells all about it, so its tag is made of that."""
        moment = single(parameters(request, (_ASOF,)), _ASOF)
        ended = await self._feeds.run(self._feeds.head, moment)
        tag = conditional.log_tag(ended.last, request, (0, 0))
        conditional.check(request, tag)
        return conditional.tagged(Answer(200, [JSON, root_link(request.base)], dumps(_shown(ended))), tag)

    async def _followed(self, request: Request) -> Answer:
        """Which registry this is and which ones it follows by their logs, for those that want to follow it."""
        parameters(request, ())
        found = await self._feeds.run(self._upstream)
        return Answer(200, [JSON, root_link(request.base), (b"cache-control", b"no-store")], dumps(found))


def _shown(ended: Interaction) -> dict[str, object]:
    named = {} if ended is START else {"time": ended.time, "xregcorrelationid": ended.xregcorrelationid}
    return {"position": ended.last, **named, "chain": ended.chain.hex(), "state": ended.state.hex()}

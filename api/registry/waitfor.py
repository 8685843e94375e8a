"""`?waitfor=POSITION`: a read waits until this server's read model has a position, then shows at least that state.

Servers on one database see each commit at once, so a read rarely has to wait: while a read model is being rebuilt, or
for a position before its commit. A client that passes the last position that it was given can rely on it, whatever is
between it and the servers. Each registry counts its own positions, also a replica.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from annals.api.http.disconnects import watch_client
from annals.api.http.query_params import all_query_params, bounded_number, invalid_param, query_without, single_value
from annals.api.http.request import Request
from annals.api.registry.log_head_watcher import POLL_SECONDS, LogHeadWatcher
from annals.domain.errors.http_errors import PositionNotReached
from annals.projections.entities.view import View
from annals.projections.entities.view_pool import ViewPool
from annals.projections.log.reader import MAX_POSITION

WAITFOR: Final = "waitfor"
TIMEOUT: Final = "timeout"

_SECONDS: Final = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,3})?\Z")
_WAITING_METHODS: Final = ("GET", "HEAD")


class _Wait(NamedTuple):
    position: int
    seconds: float


#: How far something that a view shows is in the log.
FollowerPosition = Callable[[View], int]


def asks_to_wait(request: Request) -> bool:
    """Whether a request has the parameter `waitfor`, however that is encoded."""
    return (WAITFOR.encode() in request.query or b"%" in request.query) and WAITFOR in all_query_params(request)


class PositionWaits:
    """Lets reads wait. log_head_watcher: knows when the log grows. max_seconds: of one wait.

    followers: what follows the read model, by the segments of the path whose answers show it.
    """

    def __init__(
        self,
        readers: ViewPool,
        log_head_watcher: LogHeadWatcher,
        max_seconds: float,
        followers: Mapping[tuple[str, ...], FollowerPosition],
    ) -> None:
        self._readers = readers
        self._followers = followers
        self._log_head_watcher = log_head_watcher
        self._max_seconds = max_seconds
        # The last position that was read. It needs no correction: a process whose log has lost its end has to restart.
        self._reached = 0

    async def wait(self, request: Request, receive: Receive) -> Request:
        """The request without `waitfor` and `timeout`, once the read model has the position that it names.

        Costs nothing if an earlier wait has seen the position, otherwise one look-up as long as there is no need to
        wait. Raises: BadRequest, PositionNotReached, ClientDisconnect.
        """
        if not asks_to_wait(request):
            return request
        wait = self._parse(request)
        follower = self._followers.get(request.segments)
        has_reached = partial(self._has_followed, follower) if follower else self._has_reached
        if not await has_reached(wait.position):
            await self._wait(wait, receive, has_reached)
        return replace(request, query=_other_parameters(request))

    def _parse(self, request: Request) -> _Wait:
        """The wait that a request asks for. Raises: BadRequest."""
        parameters = all_query_params(request)
        text = single_value(parameters, WAITFOR) or ""
        if request.method not in _WAITING_METHODS:
            raise invalid_param(WAITFOR, "only GET and HEAD can wait; a write always sees the latest state")
        if (position := bounded_number(text, 0, MAX_POSITION)) is None:
            raise invalid_param(WAITFOR, f"{text!r} is not a position of the log from 0 to {MAX_POSITION}")
        timeout = single_value(parameters, TIMEOUT)
        if timeout is None:
            return _Wait(position, self._max_seconds)
        if not _SECONDS.match(timeout) or float(timeout) > self._max_seconds:
            raise invalid_param(TIMEOUT, f"{timeout!r} is not a number of seconds from 0 to {self._max_seconds:g}")
        return _Wait(position, float(timeout))

    async def _has_reached(self, position: int) -> bool:
        if position > self._reached:
            current = await self._readers.read(lambda: self._readers.quick_view().position())
            self._reached = max(self._reached, current)
        return position <= self._reached

    async def _has_followed(self, position_of: FollowerPosition, position: int) -> bool:
        return position <= await self._readers.read(lambda: position_of(self._readers.quick_view()))

    async def _wait(
        self, wait: _Wait, receive: Receive, has_reached: Callable[[int], Coroutine[Any, Any, bool]]
    ) -> None:
        """Returns when the position is reached. Raises: PositionNotReached, ClientDisconnect."""
        deadline = time.monotonic() + wait.seconds
        async with watch_client(receive) as client_gone:
            while (remaining := deadline - time.monotonic()) > 0:
                is_in_log = await self._log_head_watcher.wait_beyond(wait.position - 1, remaining, client_gone)
                if await has_reached(wait.position):
                    return
                if not is_in_log:
                    break
                await asyncio.sleep(POLL_SECONDS)  # the read model, or what follows it, is being written
            if client_gone.done():
                raise ClientDisconnect
        raise PositionNotReached(position=wait.position, reached=self._reached)


def _other_parameters(request: Request) -> bytes:
    return query_without(request, WAITFOR, TIMEOUT).encode("latin-1")

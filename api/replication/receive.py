"""`POST /-/links/{id}/log`: another registry pushes its log, as lines of a feed with documents."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from annals.api.feeds.formats import NDJSON
from annals.api.http.json_bodies import json_response
from annals.api.http.limits import MAX_BODY, check_unencoded
from annals.api.http.query_params import bounded_number, invalid_param, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.replication.representations import LinkApiContext, find_link
from annals.domain.errors.http_errors import BodyTooLarge, UnsupportedMediaType
from annals.domain.errors.problems import BadRequest
from annals.domain.values.line_buffer import LineBuffer
from annals.projections.log.reader import MAX_POSITION
from annals.projections.replication.log.log_lines import BrokenFeed

#: Number of pushes that are received at the same time; others wait.
THREADS: Final = 4
#: Seconds to wait for the next part of a body.
PART_SECONDS: Final = 30.0
#: Maximum bytes of one line. Base64 makes a document a third larger.
_MAX_LINE_BYTES: Final = 2 * MAX_BODY
_AFTER: Final = "after"
_STATE: Final = "state"
_STATE_HASH: Final = re.compile(r"(?:[0-9a-f]{64})?")


class LogReceiveHandler:
    """Handles pushed logs; see the module."""

    def __init__(self, context: LinkApiContext) -> None:
        self._context = context
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="annals-receiving")

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The position of the other log up to which this registry has everything.

        The body is streamed and never held as a whole.
        Raises: NotFound, NotReceiving, LogGap, Diverged, BadRequest, UnsupportedMediaType, BodyTooLarge,
        ClientDisconnect.
        """
        params = query_params(request, (_AFTER, _STATE))
        after_text, state = single_value(params, _AFTER) or "0", single_value(params, _STATE) or ""
        if (after := bounded_number(after_text, 0, MAX_POSITION)) is None:
            raise invalid_param(_AFTER, f"{after_text!r} is not a position")
        if not _STATE_HASH.fullmatch(state):
            raise invalid_param(_STATE, f"{state!r} is not a state hash of 64 hex digits")
        if request.media_type != NDJSON:
            raise UnsupportedMediaType(list=NDJSON)
        check_unencoded(request)
        body = _RequestBody(receive)
        try:
            future = self._pool.submit(self._receive, request.segments[2], after, state, body)
            position = await asyncio.wrap_future(future)
        except BrokenFeed as error:
            raise BadRequest(error_detail=str(error)) from None
        finally:
            body.end()
        return json_response(request, 200, {"position": position})

    def _receive(self, id: str, after: int, state: str, body: _RequestBody) -> int:
        link = find_link(self._context.registry.readers.quick_view(), id)
        return self._context.replication.receive(link, after, state, body.iter_lines())


class _RequestBody:
    """A request body that a worker thread reads while the event loop receives it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._pending: Future[Any] | None = None
        self._has_ended = False

    def iter_lines(self) -> Iterator[bytes]:
        """The lines of the body.

        Raises: ClientDisconnect if the body breaks off or the request was given up; BodyTooLarge.
        """
        incomplete_line = LineBuffer()
        has_more = True
        while has_more:
            message = self._receive_message()
            yield from incomplete_line.add(message.get("body", b""))
            if len(incomplete_line) > _MAX_LINE_BYTES:
                raise BodyTooLarge(max_size=_MAX_LINE_BYTES)
            has_more = message.get("more_body", False)
        yield incomplete_line.end()

    def end(self) -> None:
        """Stops reading: the request is over."""
        self._has_ended = True
        if self._pending is not None:
            self._pending.cancel()

    def _receive_message(self) -> Any:
        if self._has_ended:
            raise ClientDisconnect
        self._pending = asyncio.run_coroutine_threadsafe(asyncio.wait_for(self._receive(), PART_SECONDS), self._loop)
        try:
            message = self._pending.result(PART_SECONDS + 1)
        except (CancelledError, TimeoutError):
            raise ClientDisconnect from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message

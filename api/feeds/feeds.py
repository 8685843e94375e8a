"""Builds feed responses: one page, all events up to now, or an endless stream.

A feed builds its response in pieces. A pool thread makes each piece with its own read of the store. Between two pieces
a feed holds nothing, so slow or waiting readers cost neither a thread nor a transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from annals.api.auth.callers import Authenticator
from annals.api.auth.rights_check import RIGHTS_SECONDS, RightsCheck
from annals.api.feeds.formats import FeedFormat, heartbeat
from annals.api.feeds.reader import FeedReader
from annals.api.feeds.request_params import MAX_LIMIT, FeedParams
from annals.api.feeds.shared_pieces import FeedPiece, SharedPieces
from annals.api.feeds.sources import FeedSource
from annals.api.http.asof import escape_link_url
from annals.api.http.disconnects import ClientGone, watch_client
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import UNBUFFERED, Headers, Response
from annals.api.registry.log_head_watcher import LogHeadWatcher
from annals.api.registry.open_registry import Registry
from annals.commands.store.hashes import Interaction
from annals.projections.log.answer_position import note_position
from annals.projections.log.reader import Log, is_position

T = TypeVar("T")

#: Seconds between heartbeats on an idle stream.
HEARTBEAT_SECONDS: Final = 15.0
#: Seconds that a page may spend searching for events. Its `next` link continues where the search stopped.
PAGE_SECONDS: Final = 20.0
#: The first line of a stream: the milliseconds after which a disconnected reader reconnects.
RETRY_LINE: Final = b"retry: 1000\n\n"
THREADS: Final = 4

_NO_STORE: Final = (b"cache-control", b"no-store")
_VARY: Final = (b"vary", b"accept")


class Feeds:
    """The feeds of one registry.

    log_head_watcher: receives a notice of each commit. Call its `stop` before the server waits for open responses.
    authenticator: tells whether the reader of an endless stream still has its rights.
    """

    def __init__(self, registry: Registry, log_head_watcher: LogHeadWatcher, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._readers = registry.readers
        self._clock = registry.store.clock
        self._log_head_watcher = log_head_watcher
        self._shared_pieces = SharedPieces()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="annals-feed")
        log_head_watcher.start(lambda: registry.readers.read(lambda: self.log().head().last))

    def log(self) -> Log:
        """The log, through the calling thread's connection."""
        return self._readers.quick_view().log

    def head(self, asof: str | None = None) -> Interaction:
        """The last interaction, or the last one that had ended at a moment. Raises: BadRequest (FLAG-80)."""
        interaction = self.log().head() if asof is None else self.log().as_of(asof, self._clock())
        note_position(interaction.last)
        return interaction

    async def answer(
        self, request: Request, receive: Receive, feed_params: FeedParams, feed_format: FeedFormat, source: FeedSource
    ) -> Response:
        """The feed response, from the position that the reader asks for. Raises: BadRequest, ClientDisconnect."""
        after = await self.run(self._resume_position, feed_params)
        if feed_format.is_endless:
            headers = [feed_format.content_type, root_link(request.base), _NO_STORE, _VARY, UNBUFFERED]
            note_position(after)
            event_stream = self._stream(
                FeedReader(source, feed_format, after, feed_params.limit),
                feed_format,
                source,
                receive,
                RightsCheck(self._authenticator, request),
            )
            return Response(200, headers, event_stream, first_chunks=(RETRY_LINE,))
        limit = feed_params.limit or feed_format.limit
        reader = FeedReader(
            source, feed_format, after, min(limit, MAX_LIMIT) if limit and source.limits_by_count else None
        )
        deadline = time.monotonic() + feed_params.wait + PAGE_SECONDS
        rights = RightsCheck(self._authenticator, request)
        async with watch_client(receive) as client_gone:
            first_piece, end = await self._first_piece(reader, source, limit, feed_params.wait, client_gone, rights)
            if reader.limit is None:
                return Response(
                    200,
                    _page_headers(request, feed_format, feed_params, end),
                    self._following_pieces(reader, feed_format, first_piece, end),
                )
            pieces = [first_piece]
            while not (reader.has_reached(end) or time.monotonic() > deadline):
                pieces.append(await self._next_piece(reader, end, client_gone, deadline))
        body = b"".join((feed_format.before, *pieces, feed_format.after))
        return Response(200, _page_headers(request, feed_format, feed_params, reader.position), body)

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """The result of a function that uses the store; a thread of the feed pool runs it."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, copy_context().run, function, *arguments)

    def close(self) -> None:
        """Waits for the pieces in progress."""
        self._pool.shutdown()

    def _resume_position(self, feed_params: FeedParams) -> int:
        """The position after which the reader resumes. Raises: BadRequest."""
        last_position = self.log().as_of(feed_params.after, self._clock(), feed_params.name).last
        return int(feed_params.after) if is_position(feed_params.after) else last_position

    async def _first_piece(
        self,
        reader: FeedReader,
        source: FeedSource,
        limit: int | None,
        wait_seconds: float,
        client_gone: ClientGone,
        rights: RightsCheck,
    ) -> tuple[bytes, int]:
        """The first piece with content, and the position at which the response ends.

        Waits up to `wait_seconds` for such a piece; the piece is empty if none appears.
        """
        deadline = time.monotonic() + wait_seconds
        while True:
            end = await self.run(source.end, reader.position, limit)
            piece = await self._next_piece(reader, end, client_gone, deadline + PAGE_SECONDS)
            remaining = deadline - time.monotonic()
            if (
                piece
                or remaining <= 0
                or not await self._log_head_watcher.wait_beyond(reader.position, remaining, client_gone)
            ):
                return piece, end
            if not await rights.still_hold():  # the next request is answered by what the reader may see then
                return b"", reader.position

    async def _next_piece(self, reader: FeedReader, end: int, client_gone: ClientGone, deadline: float) -> bytes:
        """The next piece with content; empty if there is none up to `end`, or if the time is over.

        deadline: a time of the monotonic clock. Raises: ClientDisconnect.
        """
        piece = b""
        while not (piece or reader.has_reached(end)):
            if client_gone.done():
                raise ClientDisconnect
            piece = await self.run(reader.next_piece, end)
            if time.monotonic() > deadline:
                break
        return piece

    async def _following_pieces(
        self, reader: FeedReader, feed_format: FeedFormat, first_piece: bytes, end: int
    ) -> AsyncGenerator[bytes, None]:
        """The rest of a whole log."""
        yield feed_format.before + first_piece
        while not reader.has_reached(end):
            yield await self.run(reader.next_piece, end)
        yield feed_format.after

    async def _stream(
        self,
        reader: FeedReader,
        feed_format: FeedFormat,
        source: FeedSource,
        receive: Receive,
        rights: RightsCheck,
    ) -> AsyncGenerator[bytes, None]:
        """The pieces until the reader is full or gone, or has other rights; it then connects again with these."""
        heartbeat_at = time.monotonic() + HEARTBEAT_SECONDS
        async with watch_client(receive) as client_gone:
            while not (reader.is_full or client_gone.done() or self._log_head_watcher.is_stopped):
                if not await rights.still_hold():
                    return
                if shared_content := await self._shared_piece(reader, feed_format, source):
                    yield shared_content
                end = await self.run(source.end, reader.position, None) if shared_content is None else reader.position
                while not (reader.has_reached(end) or client_gone.done() or self._log_head_watcher.is_stopped):
                    if not await rights.still_hold():
                        return
                    yield await self.run(reader.next_piece, end)
                seconds = min(HEARTBEAT_SECONDS, RIGHTS_SECONDS)
                if reader.is_full or await self._log_head_watcher.wait_beyond(end, seconds, client_gone):
                    heartbeat_at = time.monotonic() + HEARTBEAT_SECONDS
                elif self._log_head_watcher.is_stopped or time.monotonic() >= heartbeat_at:
                    heartbeat_at = time.monotonic() + HEARTBEAT_SECONDS
                    yield heartbeat(reader.position)

    async def _shared_piece(self, reader: FeedReader, feed_format: FeedFormat, source: FeedSource) -> bytes | None:
        """Everything after the reader's position, from a piece that readers at this position share; moves the reader.

        None if the reader shares nothing with others, or if one piece does not reach the end of the log.
        """
        if source.share_key is None or reader.limit is not None:
            return None
        piece_key = (source.share_key, feed_format.content_type, reader.position)
        piece = await self._shared_pieces.get(
            piece_key, partial(self.run, self._read_piece, source, feed_format, reader.position)
        )
        if not piece.is_complete:
            return None
        reader.position = piece.position
        return piece.content

    def _read_piece(self, source: FeedSource, feed_format: FeedFormat, after: int) -> FeedPiece:
        end = source.end(after, None)
        reader = FeedReader(source, feed_format, after, None)
        content = reader.next_piece(end)
        return FeedPiece(content, reader.position, reader.has_reached(end))


def _page_headers(request: Request, feed_format: FeedFormat, feed_params: FeedParams, position: int) -> Headers:
    """The headers of a finite response. position: where the `next` link continues, even if nothing follows yet."""
    note_position(position)
    query = "&".join(filter(None, (feed_params.query, f"after={position}")))
    next_link = f"<{escape_link_url(f'{request.base}{request.path}?{query}')}>;rel=next"
    return [feed_format.content_type, root_link(request.base), (b"link", next_link.encode("latin-1")), _NO_STORE, _VARY]

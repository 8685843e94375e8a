"""Pulls the log of another registry over HTTP: whole interactions, as soon as they are committed there."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Final, TypeVar

from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import Link
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.comparison import UNKNOWN_POSITION
from annals.projections.replication.log.earlier_copies import check_earlier_copies
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.link_status import LinkStatusRecorder, record_status
from annals.projections.replication.log.log_lines import NDJSON, LogLineParser, parse_interactions, parse_next_position
from annals.projections.replication.log.widened_scope import fetch_widened_scope
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError, RemoteLines

#: Seconds after which a stream ends at the next data, so that both registries are compared again; and seconds between
#: checks for the end of the other log.
STREAM_SECONDS: Final = 20
HEAD_POLL_SECONDS: Final = 2
#: Seconds from one stream to the next, because something between both registries may end streams at once.
MIN_STREAM_SECONDS: Final = 1
_EVENT_STREAM: Final = "text/event-stream"
_DATA_FIELD: Final = b"data: "
_ID_FIELD: Final = b"id: "

F = TypeVar("F")


class LogPull:
    """Runs a link that pulls a log over HTTP."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context

    def run(self) -> None:
        """See `LinkWorker`."""
        with (
            closing(self._context.connect(self._link)) as remote,
            record_status(self._link, self._context, remote) as recorder,
        ):
            check_earlier_copies(self._link, self._context, remote)
            fetch_widened_scope(self._link, self._context, remote)
            ingester = LogIngester(self._link, self._context, remote)
            while not self._context.stopping.is_set():
                recorder.note_head()
                fetch_interactions(remote, ingester, self._context)
                recorder.note_caught_up(ingester)
                started_at = time.monotonic()
                follow_stream(remote, ingester, self._context, recorder)
                self._context.stopping.wait(max(0.0, started_at + MIN_STREAM_SECONDS - time.monotonic()))


def fetch_interactions(remote: RemoteClient, ingester: LogIngester, context: LinkWorkerContext) -> None:
    """Imports everything that the other registry has now.

    If it is nothing, the cursor moves to where the answer says that the next page begins: the other registry hides the
    events between from this one. An answer without that is not from a registry.
    Raises: RemoteError, BrokenFeed, Diverged.
    """
    ingester.resume_after_last_read(remote)
    cursor = ingester.cursor
    with _stream_log(remote, ingester, NDJSON) as answer:
        next_position = parse_next_position(answer.next_url)
        interactions = parse_interactions(answer.lines, context.max_interaction_bytes)
        ingester.ingest(_until_stopping(context, interactions))
    if ingester.cursor == cursor and not context.stopping.is_set():
        ingester.cursor = max(cursor, next_position)


def follow_stream(
    remote: RemoteClient, ingester: LogIngester, context: LinkWorkerContext, recorder: LinkStatusRecorder
) -> None:
    """Imports new interactions as they arrive, for a limited time.

    It uses one stream, which costs the other registry little: it notifies all followers at once.
    Raises: RemoteError, BrokenFeed, Diverged.
    """
    with _stream_log(remote, ingester, _EVENT_STREAM) as answer:
        interactions = _stream_interactions(answer.lines, ingester, recorder, context.max_interaction_bytes)
        ingester.ingest(_until_stopping(context, interactions))


@contextmanager
def _stream_log(remote: RemoteClient, ingester: LogIngester, media_type: str) -> Iterator[RemoteLines]:
    """The other log after the cursor. Raises: RemoteError."""
    query = {"after": str(ingester.cursor), "documents": ""}
    try:
        with remote.stream("/-/log", media_type, query) as answer:
            yield answer
    except RemoteError as error:
        if error.status == UNKNOWN_POSITION:
            ingester.check_end(remote, ingester.cursor)
        raise


def _until_stopping(context: LinkWorkerContext, items: Iterator[F]) -> Iterator[F]:
    for item in items:
        if context.stopping.is_set():
            return
        yield item


def _stream_interactions(
    lines: Iterable[bytes | None], ingester: LogIngester, recorder: LinkStatusRecorder, max_bytes: int
) -> Iterator[ForeignInteraction | None]:
    """The interactions of a server-sent event stream, for a limited time.

    A None means: record everything so far without waiting for more. An idle stream now and then sends its position,
    which may be beyond interactions that it hides from this reader. max_bytes: see `LogLineParser`.
    """
    parser, started_at, last_position, frame_position = LogLineParser(max_bytes), time.monotonic(), 0, 0
    checked_at = started_at
    for line in lines:
        if line is None:
            yield None
            if not parser.has_partial:
                ingester.cursor = max(ingester.cursor, last_position)
            now = time.monotonic()
            if now - checked_at > HEAD_POLL_SECONDS:
                recorder.note_progress(ingester)
                checked_at = now
            if now - started_at > STREAM_SECONDS:
                return
        elif not line:  # the end of a frame: the connection may end before its data, which follow its position
            last_position = frame_position
        elif line.startswith(_ID_FIELD):
            frame_position = int(line[len(_ID_FIELD) :])
        elif line.startswith(_DATA_FIELD) and (interaction := parser.feed(line[len(_DATA_FIELD) :])) is not None:
            yield interaction

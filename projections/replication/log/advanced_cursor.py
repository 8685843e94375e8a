"""What is imported over a link: its stored cursor may be behind what is recorded.

A worker records interactions, and then stores its cursor. A process may end in between, and others may read the cursor
in between. Recorded interactions are skipped when they arrive again, so a repair as of an earlier cursor would remove
what they brought for good.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Final

from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.projections.log.reader import Log
from annals.projections.replication.log.comparison import UNKNOWN_POSITION, RemoteSnapshot, remote_snapshot
from annals.projections.replication.log.ingest import BATCH_EVENTS
from annals.projections.replication.log.log_lines import NDJSON, FeedEvent, parse_feed_events, parse_next_position
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: Largest number of events that are requested together.
_PAGE_EVENTS: Final = 2 * BATCH_EVENTS


def imported_snapshot(
    link: Link, log: Log, remote: RemoteClient, cursor: int | None, *, stops_at_missing: bool = False
) -> RemoteSnapshot:
    """The other registry after the last interaction that is imported; as it is now if it does not know the cursor.

    Parameters, errors and cost: see `advanced_cursor`. cursor: None before the first import.
    """
    if cursor is None:
        return remote_snapshot(remote)
    try:
        return remote_snapshot(remote, advanced_cursor(link, log, remote, cursor, stops_at_missing=stops_at_missing))
    except RemoteError as error:
        if error.status != UNKNOWN_POSITION:
            raise
        return remote_snapshot(remote)


def advanced_cursor(link: Link, log: Log, remote: RemoteClient, cursor: int, *, stops_at_missing: bool = False) -> int:
    """A link's cursor, moved past the interactions that are recorded in this registry's log.

    log: of a view that was opened before the cursor was read. Then at most one batch is recorded beyond the cursor, so
    the search ends after a batch of which nothing is recorded.
    stops_at_missing: whether to end before the first interaction in scope that is not recorded. Otherwise the cursor
    may skip such interactions: later ones may be recorded because of a narrower scope, another link, or because they
    came from here.
    Raises: RemoteError, with 400 if the other registry does not know the cursor; BrokenFeed.
    Cost: reads the other log from the cursor, at most one batch further than what is recorded.
    """
    missing_events, id, is_recorded = 0, "", False
    with closing(_events_after(remote, cursor)) as events:
        for event in events:
            if event.xregcorrelationid != id:
                id, is_recorded = event.xregcorrelationid, log.interaction(event.xregcorrelationid) is not None
            if is_recorded:
                cursor, missing_events = event.last, 0
                continue
            missing_events += not xids.is_outside_tree(event.stream)  # a push leaves the others out of its batches
            if missing_events >= BATCH_EVENTS or (stops_at_missing and link.scope.has(event.stream)):
                break
    return cursor


def _events_after(remote: RemoteClient, after: int) -> Generator[FeedEvent, None, None]:
    """The events of the other log after a position. Raises: as `advanced_cursor`."""
    end = -1
    while after != end:
        end = after
        query = {"after": str(after), "limit": str(_PAGE_EVENTS)}
        with remote.stream("/-/log", NDJSON, query) as answer:
            after = max(after, parse_next_position(answer.next_url))
            yield from parse_feed_events(answer.lines)

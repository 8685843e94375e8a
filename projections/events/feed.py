"""Reads the log in order, one interaction after another, for clients that read it in steps.

No cursor or transaction stays open between two steps. The log up to a position never changes, so a slow reader sees the
same as a fast one, and costs the store nothing while it waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from annals.commands.store.hashes import Interaction, LogRow
from annals.projections.log.reader import Log

#: Returns the log on a connection that the calling thread may use now.
OpenLog = Callable[[], Log]

#: The maximum number of interactions, and of events, in one query.
PAGE_SIZE: Final = 500


def interactions(open_log: OpenLog, after: int, end: int) -> Iterator[tuple[Interaction, Iterator[LogRow]]]:
    """The interactions with events after `after` and up to `end`, each with these events.

    Read the events of one interaction before the next interaction; unread ones are skipped.
    """
    while after < end and (page := open_log().interactions(after, min(PAGE_SIZE, end - after))):
        last = min(page[-1].last, end)
        rows = _read_events(open_log, after, last)
        for interaction in page:
            count = min(interaction.last, end) - max(interaction.first - 1, after)
            if count > 0:
                interaction_rows = islice(rows, count)
                yield interaction, interaction_rows
                deque(interaction_rows, maxlen=0)
        after = last


def page_end(open_log: OpenLog, after: int, limit: int) -> int:
    """The end of the last interaction so that at most `limit` events lie after a position.

    At the end of the log it is the position itself. If a single interaction has more events, it is a position inside
    it.
    """
    last = after
    while page := open_log().interactions(last, PAGE_SIZE):
        for interaction in page:
            if interaction.last > after + limit:
                return last if last > after else after + limit
            last = interaction.last
    return last


def _read_events(open_log: OpenLog, after: int, last: int) -> Iterator[LogRow]:
    for start in range(after + 1, last + 1, PAGE_SIZE):
        page = list(open_log().events(start, min(start + PAGE_SIZE - 1, last)))
        if not page:  # a damaged interaction claims an end beyond that of the log
            return
        yield from page

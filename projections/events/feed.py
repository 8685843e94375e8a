"""The log in order, interaction by interaction, for readers that come back for more.

Nothing is held between two steps, no cursor and no transaction: what the log holds up to a position never changes, so a
slow reader sees the same as a fast one, and costs the store nothing while it waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from commands.store.hashes import Interaction, LogRow
from projections.log.reader import Log

#: Gives the log through a connection that the calling thread may use now.
OpenLog = Callable[[], Log]

#: Interactions, and events, of one look at the store.
PAGE_SIZE: Final = 500


def interactions(logs: OpenLog, after: int, end: int) -> Iterator[tuple[Interaction, Iterator[LogRow]]]:
    """The interactions that have events beyond `after` and up to `end`, with those events.

    The events of one are to be taken before the next is asked for; those that are not are passed over.
    """
    while after < end and (found := logs().interactions(after, min(PAGE_SIZE, end - after))):
        last = min(found[-1].last, end)
        rows = _events(logs, after, last)
        for interaction in found:
            count = min(interaction.last, end) - max(interaction.first - 1, after)
            if count > 0:
                taken = islice(rows, count)
                yield interaction, taken
                deque(taken, maxlen=0)
        after = last


def page_end(logs: OpenLog, after: int, limit: int) -> int:
    """Where the interactions end of which at most `limit` events lie beyond a position.

    The position itself at the end of the log; a place inside of an interaction that alone is larger than that.
    """
    last = after
    while found := logs().interactions(last, PAGE_SIZE):
        for interaction in found:
            if interaction.last > after + limit:
                return last if last > after else after + limit
            last = interaction.last
    return last


def _events(logs: OpenLog, after: int, last: int) -> Iterator[LogRow]:
    for start in range(after + 1, last + 1, PAGE_SIZE):
        page = list(logs().events(start, min(start + PAGE_SIZE - 1, last)))
        if not page:  # a damaged interaction says that it ends where the log does not go
            return
        yield from page

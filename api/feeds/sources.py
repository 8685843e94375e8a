"""What feeds are made of: the lines of each position of the log, as CloudEvents or as they are stored."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Protocol

from api.feeds.formats import PositionLines
from api.feeds.rights import VisibilityTest, is_public_stream
from api.feeds.selection import EventSelection
from commands.store.hashes import Interaction, LogRow
from projections.events.event_families import EventFamily, published_events
from projections.events.feed import OpenLog, interactions, page_end
from projections.log.json_lines import LogLine, log_lines

#: Positions that are passed over until a reader is told how far that is: it need not wait for an event that it wants.
MAX_SILENT_POSITIONS: Final = 100


class FeedSource(Protocol):
    """One feed, as one reader may see it.

    counts: whether a limit is met by counting, because only looking at events shows which of them are wanted.
    shared: what has to be equal for two readers to be given the same; None where no two are.
    """

    @property
    def counts(self) -> bool: ...
    @property
    def shared(self) -> Hashable | None: ...

    def groups(self, after: int, end: int) -> Iterator[PositionLines]:
        """The lines of the positions beyond one and up to another; a group without lines says how far that is."""

    def end(self, after: int, limit: int | None) -> int:
        """Where an answer of so many events ends that begins beyond a position; None for any number."""


class EventFeedSource:
    """CloudEvents of some families: a few for a position, of which a reader wants some."""

    counts: Final = True
    shared: Final = None

    def __init__(self, logs: OpenLog, choice: EventSelection, families: Sequence[EventFamily]) -> None:
        self._logs = logs
        self._choice = choice
        self._test = choice.accepts if choice.tests else None
        self._families = families

    def groups(self, after: int, end: int) -> Iterator[PositionLines]:
        """See Source."""
        for interaction, rows in interactions(self._logs, *self._choice.stretch(self._logs(), after, end)):
            if self._choice.happened(interaction.time):
                yield from self._told(interaction, rows)
            yield PositionLines(min(interaction.last, end), (), 0)

    def end(self, after: int, limit: int | None) -> int:
        """See Source."""
        return self._logs().head().last

    def _told(self, interaction: Interaction, rows: Iterator[LogRow]) -> Iterator[PositionLines]:
        items: list[LogLine] = []
        position, last, passed, test = 0, 0, 0, self._test
        for _, message in published_events(
            self._families, interaction, (row for row in rows if is_public_stream(row.stream))
        ):
            if test is not None and not test(message):
                if message.position != last:
                    last, passed = message.position, passed + bool(last)
                    if passed >= MAX_SILENT_POSITIONS and position < last:
                        yield PositionLines(position, items, len(items)) if items else PositionLines(last - 1, (), 0)
                        items, passed = [], 0
                continue
            if message.position != position:
                if items:
                    yield PositionLines(position, items, len(items))
                items, position = [], message.position
            items.append(LogLine(message.type, message.json()))
        if items:
            yield PositionLines(position, items, len(items))


class LogFeedSource:
    """The log itself: stored events, and before those of an interaction a line that describes it."""

    counts: Final = False

    def __init__(self, logs: OpenLog, sees: VisibilityTest | None, *, documents: bool = False) -> None:
        """sees: which streams the reader may see, None for all. documents: whether those come along."""
        self._logs = logs
        self._sees = sees
        self._documents = documents

    @property
    def shared(self) -> Hashable:
        return self._sees, self._documents

    def groups(self, after: int, end: int) -> Iterator[PositionLines]:
        """See Source."""
        sees, document = self._sees, self._document if self._documents else None
        for interaction, rows in interactions(self._logs, after, end):
            seen = rows if sees is None else (row for row in rows if sees(row.stream))
            for position, items in log_lines(interaction, seen, document):
                yield PositionLines(position, items, 1)

    def end(self, after: int, limit: int | None) -> int:
        """See Source. Where an interaction ends, unless one alone is larger than the limit."""
        return self._logs().head().last if limit is None else page_end(self._logs, after, limit)

    def _document(self, sha256: str) -> bytes | None:
        return self._logs().document(sha256)

"""What feeds are made of: the lines of each position of the log, as CloudEvents or as they are stored."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Protocol

from api.feeds.choosing import Choice
from api.feeds.forms import Group
from api.feeds.rights import Sees, is_public
from commands.proof import Interaction, LogRow
from projections.families import Family, told
from projections.feed import Logs, edge, interactions
from projections.loglines import Item, lines

#: Positions that are passed over until a reader is told how far that is: it need not wait for an event that it wants.
PASSED: Final = 100


class Source(Protocol):
    """One feed, as one reader may see it.

    counts: whether a limit is met by counting, because only looking at events shows which of them are wanted.
    shared: what has to be equal for two readers to be given the same; None where no two are.
    """

    @property
    def counts(self) -> bool: ...
    @property
    def shared(self) -> Hashable | None: ...

    def groups(self, after: int, end: int) -> Iterator[Group]:
        """The lines of the positions beyond one and up to another; a group without lines says how far that is."""

    def end(self, after: int, limit: int | None) -> int:
        """Where an answer of so many events ends that begins beyond a position; None for any number."""


class EventsSource:
    """CloudEvents of some families: a few for a position, of which a reader wants some."""

    counts: Final = True
    shared: Final = None

    def __init__(self, logs: Logs, choice: Choice, families: Sequence[Family]) -> None:
        self._logs = logs
        self._choice = choice
        self._test = choice.accepts if choice.tests else None
        self._families = families

    def groups(self, after: int, end: int) -> Iterator[Group]:
        """See Source."""
        for interaction, rows in interactions(self._logs, *self._choice.stretch(self._logs(), after, end)):
            if self._choice.happened(interaction.time):
                yield from self._told(interaction, rows)
            yield Group(min(interaction.last, end), (), 0)

    def end(self, after: int, limit: int | None) -> int:
        """See Source."""
        return self._logs().head().last

    def _told(self, interaction: Interaction, rows: Iterator[LogRow]) -> Iterator[Group]:
        items: list[Item] = []
        position, last, passed, test = 0, 0, 0, self._test
        for _, message in told(self._families, interaction, (row for row in rows if is_public(row.stream))):
            if test is not None and not test(message):
                if message.position != last:
                    last, passed = message.position, passed + bool(last)
                    if passed >= PASSED and position < last:
                        yield Group(position, items, len(items)) if items else Group(last - 1, (), 0)
                        items, passed = [], 0
                continue
            if message.position != position:
                if items:
                    yield Group(position, items, len(items))
                items, position = [], message.position
            items.append(Item(message.type, message.json()))
        if items:
            yield Group(position, items, len(items))


class LogSource:
    """The log itself: stored events, and before those of an interaction a line that describes it."""

    counts: Final = False

    def __init__(self, logs: Logs, sees: Sees | None, *, documents: bool = False) -> None:
        """sees: which streams the reader may see, None for all. documents: whether those come along."""
        self._logs = logs
        self._sees = sees
        self._documents = documents

    @property
    def shared(self) -> Hashable:
        return self._sees, self._documents

    def groups(self, after: int, end: int) -> Iterator[Group]:
        """See Source."""
        sees, document = self._sees, self._document if self._documents else None
        for interaction, rows in interactions(self._logs, after, end):
            seen = rows if sees is None else (row for row in rows if sees(row.stream))
            for position, items in lines(interaction, seen, document):
                yield Group(position, items, 1)

    def end(self, after: int, limit: int | None) -> int:
        """See Source. Where an interaction ends, unless one alone is larger than the limit."""
        return self._logs().head().last if limit is None else edge(self._logs, after, limit)

    def _document(self, sha256: str) -> bytes | None:
        return self._logs().document(sha256)

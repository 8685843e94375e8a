"""A preview of the messages that a subscription would have matched in a range of the log (SUB-511).

It only counts: it stores and sends nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from domain import cesql
from domain.subscriptions.error_places import ErrorPlace
from domain.subscriptions.subscription import Subscription
from projections.events.event_families import EventFamily
from projections.events.feed import OpenLog
from projections.subscriptions.event_messages import EventMessage, EventMessageReader, SubscriptionFilter

#: Time limit of a preview in seconds. A partial result says where to continue.
MAX_SECONDS: Final = 20.0
#: Log positions between two progress reports.
PROGRESS_POSITIONS: Final = 20_000


@dataclass(slots=True)
class PreviewCounts:
    """The counts up to a position.

    considered, matched: number of events by family and type.
    """

    first: int
    last: int
    position: int
    considered: Counter[tuple[str, str]] = field(default_factory=Counter)
    matched: Counter[tuple[str, str]] = field(default_factory=Counter)
    matches: list[EventMessage] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the whole range was scanned."""
        return self.position >= self.last


@dataclass(slots=True)
class ExpressionErrors:
    """How often an expression could not be evaluated, with the id and error of the first event that failed."""

    pointer: str
    expression: cesql.CesqlExpression
    count: int = 0
    first: tuple[str, str] | None = None

    def evaluate(self, told: EventMessage) -> None:
        """Evaluates the expression for an event and records an error."""
        error = self.expression.evaluate(told.attributes).error
        if error is not None:
            self.count += 1
            self.first = self.first or (told.message.id, str(error.value))


class Preview:
    """A preview over past events.

    reads: whether an xid that an event is about may be read.
    most: largest number of matches to return.
    """

    def __init__(
        self,
        logs: OpenLog,
        families: Sequence[EventFamily],
        attributes: Mapping[str, Any],
        reads: Callable[[str], bool],
        most: int,
    ) -> None:
        self._feed = EventMessageReader(logs, families)
        self._wants = SubscriptionFilter(Subscription("", "", 0, 0, 1, 0, False, attributes), families)
        self._reads = reads
        self._max_events = most
        self.errors = list(_expressions(attributes.get("filters", []), ErrorPlace("/filters")))

    def scan(self, first: int, last: int, clock: Callable[[], float] = time.monotonic) -> Iterator[PreviewCounts]:
        """The counts from first to last, yielded repeatedly as they grow. The last one is the result."""
        tally, until, told = PreviewCounts(first, last, first - 1), clock() + MAX_SECONDS, first - 1
        while not tally.is_complete and clock() < until:
            self._take(tally, *self._feed.read_chunk(tally.position, last), lambda: clock() >= until)
            if tally.position - told >= PROGRESS_POSITIONS:
                told = tally.position
                yield tally
        yield tally

    def _take(self, tally: PreviewCounts, end: int, found: Iterable[EventMessage], over: Callable[[], bool]) -> None:
        """Counts messages up to a position, or up to an earlier one once time is up. Counts one position at least."""
        for position, several in groupby(found, key=lambda told: told.message.position):
            for each in several:
                self._count(tally, each)
            tally.position = position
            if over():  # evaluating expressions can be slow, and a chunk can hold many events
                return
        tally.position = end

    def _count(self, tally: PreviewCounts, told: EventMessage) -> None:
        if not self._wants.is_candidate(told, live=False) or not self._reads(told.message.xid):
            return
        kind = told.family, told.message.type
        tally.considered[kind] += 1
        interest = self._wants.interest
        if interest.source in (None, told.message.source) and (not interest.types or kind[1] in interest.types):
            for each in self.errors:
                each.evaluate(told)
        if interest.matches(told.attributes):
            tally.matched[kind] += 1
            if len(tally.matches) < self._max_events:
                tally.matches.append(told)


def _expressions(filters: Any, place: ErrorPlace) -> Iterator[ExpressionErrors]:
    """All expressions in filters, at any depth."""
    for index, filter in enumerate(filters):
        for dialect, argument in filter.items():
            yield from _expressions_in(dialect, argument, place.at(index, dialect))


def _expressions_in(dialect: str, argument: Any, place: ErrorPlace) -> Iterator[ExpressionErrors]:
    if dialect == "sql":
        yield ExpressionErrors(place.pointer, cesql.compile_expression(argument))
    elif dialect == "not":
        for inner, value in argument.items():
            yield from _expressions_in(inner, value, place.at(inner))
    elif dialect in ("all", "any"):
        yield from _expressions(argument, place)

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

from annals.domain import cesql
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.subscription import Subscription
from annals.projections.events.event_families import EventFamily
from annals.projections.events.feed import OpenLog
from annals.projections.subscriptions.event_messages import EventMessage, EventMessageReader, SubscriptionFilter

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
    first_error: tuple[str, str] | None = None

    def evaluate(self, event: EventMessage) -> None:
        """Evaluates the expression for an event and records an error."""
        error = self.expression.evaluate(event.attributes).error
        if error is not None:
            self.count += 1
            self.first_error = self.first_error or (event.message.id, str(error.value))


class Preview:
    """A preview over past events.

    may_read: whether an xid that an event is about may be read.
    """

    def __init__(
        self,
        open_log: OpenLog,
        families: Sequence[EventFamily],
        attributes: Mapping[str, Any],
        may_read: Callable[[str], bool],
        max_matches: int,
    ) -> None:
        self._reader = EventMessageReader(open_log, families)
        self._filter = SubscriptionFilter(Subscription("", "", 0, 0, 1, 0, False, attributes), families)
        self._may_read = may_read
        self._max_matches = max_matches
        self.errors = list(_collect_expressions(attributes.get("filters", []), ErrorPlace("/filters")))

    def scan(self, first: int, last: int, clock: Callable[[], float] = time.monotonic) -> Iterator[PreviewCounts]:
        """The counts from first to last, yielded repeatedly as they grow. The last one is the result."""
        counts, deadline, reported_position = PreviewCounts(first, last, first - 1), clock() + MAX_SECONDS, first - 1
        while not counts.is_complete and clock() < deadline:
            self._count_messages(counts, *self._reader.read_chunk(counts.position, last), lambda: clock() >= deadline)
            if counts.position - reported_position >= PROGRESS_POSITIONS:
                reported_position = counts.position
                yield counts
        yield counts

    def _count_messages(
        self, counts: PreviewCounts, end: int, events: Iterable[EventMessage], is_time_up: Callable[[], bool]
    ) -> None:
        """Counts messages up to a position, or up to an earlier one once time is up. Counts one position at least."""
        for position, event_group in groupby(events, key=lambda event: event.message.position):
            for each in event_group:
                self._count_message(counts, each)
            counts.position = position
            if is_time_up():  # evaluating expressions can be slow, and a chunk can hold many events
                return
        counts.position = end

    def _count_message(self, counts: PreviewCounts, event: EventMessage) -> None:
        if not self._filter.is_candidate(event, live=False) or not self._may_read(event.message.xid):
            return
        type_key = event.family, event.message.type
        counts.considered[type_key] += 1
        interest = self._filter.interest
        if interest.source in (None, event.message.source) and (not interest.types or type_key[1] in interest.types):
            for expression_errors in self.errors:
                expression_errors.evaluate(event)
        if interest.matches(event.attributes):
            counts.matched[type_key] += 1
            if len(counts.matches) < self._max_matches:
                counts.matches.append(event)


def _collect_expressions(filters: Any, place: ErrorPlace) -> Iterator[ExpressionErrors]:
    """All expressions in filters, at any depth."""
    for index, expression_filter in enumerate(filters):
        for dialect, argument in expression_filter.items():
            yield from _expressions_in(dialect, argument, place.child(index, dialect))


def _expressions_in(dialect: str, argument: Any, place: ErrorPlace) -> Iterator[ExpressionErrors]:
    if dialect == "sql":
        yield ExpressionErrors(place.pointer, cesql.compile_expression(argument))
    elif dialect == "not":
        for inner, value in argument.items():
            yield from _expressions_in(inner, value, place.child(inner))
    elif dialect in ("all", "any"):
        yield from _collect_expressions(argument, place)

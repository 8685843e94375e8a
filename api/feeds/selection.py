"""Event selection: query parameters that choose event families, single messages, or a range of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from annals.api.http.query_params import QueryParams, invalid_param, single_value
from annals.commands.store.clock import format_time
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.subscriptions.filters import FilterError, parse_expression
from annals.projections.events.event_families import EventFamily, XRegistryFamily
from annals.projections.events.xregistry_events import ChangeEvent
from annals.projections.log.reader import Log

#: Whether a message passes one filter.
MessageTest = Callable[[ChangeEvent], bool]

_FAMILY: Final = "family"
_FROM: Final = "from"
_UNTIL: Final = "until"
_INTERACTION: Final = "xregcorrelationid"
_MIN_TIME: Final = format_time(datetime.min.replace(tzinfo=UTC))
_MAX_TIME: Final = format_time(datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class EventSelection:
    """tests: all of them must pass. since, until: interaction times in their stored text form, both inclusive."""

    tests: tuple[MessageTest, ...] = ()
    since: str | None = None
    until: str | None = None
    interaction: str | None = None

    def accepts(self, message: ChangeEvent) -> bool:
        """Whether the selection includes a message of the range."""
        return all(test(message) for test in self.tests)

    def covers_time(self, time: str) -> bool:
        """Whether the selection includes an interaction with this time."""
        return (self.since is None or self.since <= time) and (self.until is None or time <= self.until)

    def position_range(self, log: Log, after: int, end: int) -> tuple[int, int]:
        """The part of a log range that can contain selected messages."""
        if self.since is not None or self.until is not None:
            first_position, last_position = log.positions_between(self.since or _MIN_TIME, self.until or _MAX_TIME)
            after, end = max(after, first_position), min(end, last_position)
        if self.interaction is not None:
            interaction = log.interaction(self.interaction)
            after, end = (max(after, interaction.first - 1), min(end, interaction.last)) if interaction else (end, end)
        return after, end


def parse_selection(parameters: QueryParams, *extra_tests: MessageTest) -> EventSelection:
    """The selection of a request. extra_tests: additional tests, not from the request. Raises: BadRequest."""
    return EventSelection(
        (*(MESSAGE_TESTS[name](values) for name, values in parameters.items() if name in MESSAGE_TESTS), *extra_tests),
        _parse_time(parameters, _FROM),
        _parse_time(parameters, _UNTIL),
        single_value(parameters, _INTERACTION),
    )


def selected_families(parameters: QueryParams, families: Sequence[EventFamily]) -> list[EventFamily]:
    """The event families that a request names, in their own order; the registry's family by default.

    Raises: BadRequest for an unknown family.
    """
    known_names, requested_names = (
        [family.name for family in families],
        _split_values(parameters.get(_FAMILY, [XRegistryFamily.name])),
    )
    if unknown_names := requested_names.difference(known_names):
        raise invalid_param(
            _FAMILY, f"the family {min(unknown_names)!r} is unknown; use one of: {', '.join(known_names)}"
        )
    return [family for family in families if family.name in requested_names]


def _split_values(values: list[str]) -> set[str]:
    return {part.strip() for value in values for part in value.split(",")}


def _type_test(values: list[str]) -> MessageTest:
    """A test for event types; a type with `*` at its end matches all types with that prefix."""
    types = _split_values(values)
    if not all(name and "*" not in name[:-1] for name in types):
        raise invalid_param("type", "it takes types with commas between them, and * at the end of a type only")
    exact_types = frozenset(name for name in types if not name.endswith("*"))
    prefixes = tuple(name[:-1] for name in types if name.endswith("*"))
    return lambda message: message.type in exact_types or message.type.startswith(prefixes)


def _subject_test(values: list[str]) -> MessageTest:
    """A test for a subject, such as an xid, and everything below it.

    `/dirs/d1` includes `/dirs/d1/files/f1`, but not `/dirs/d10`.
    """
    subject = single_value({"subject": values}, "subject") or ""
    if not subject.startswith("/"):
        raise invalid_param("subject", f"{subject!r} is not an xid, which begins with /")
    return partial(_is_at_or_below, subject.rstrip("/"), subject.rstrip("/") + "/")


def _is_at_or_below(xid: str, prefix: str, message: ChangeEvent) -> bool:
    return message.subject == xid or message.subject.startswith(prefix)


def _cesql_test(values: list[str]) -> MessageTest:
    """A test that passes if a CESQL expression is true without an error, as in subscription filters (SUB-421)."""
    try:
        matches = parse_expression(single_value({"sql": values}, "sql") or "", "").matches
    except FilterError as error:
        raise invalid_param("sql", error.reason) from None
    return lambda message: matches(message.attributes())


#: Makes a test from the values of a parameter.
MESSAGE_TESTS: Final[Mapping[str, Callable[[list[str]], MessageTest]]] = {
    "type": _type_test,
    "subject": _subject_test,
    "sql": _cesql_test,
}
#: All parameters that select events.
SELECTION_PARAMS: Final = (*MESSAGE_TESTS, _FROM, _UNTIL, _INTERACTION, _FAMILY)


def _parse_time(parameters: QueryParams, name: str) -> str | None:
    text = single_value(parameters, name)
    if text is None:
        return None
    try:
        # A plus sign that was not escaped in a query is decoded as a space.
        return format_time(datetime.fromisoformat(to_utc(text.replace(" ", "+"))))
    except (ValueError, OverflowError) as error:
        raise invalid_param(name, f"{text!r} is not a time: {error}") from None

"""The filters of a subscription: seven dialects, compiled once to one function of an event.

Spec: CloudEvents Subscriptions, "Filters" and "Filter Dialects"; SUB-401 to SUB-423.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from annals.domain import cesql
from annals.domain.cesql import ContextAttributes
from annals.domain.cesql.values import DATA_MEMBER, canonical_string
from annals.domain.subscriptions import index_conditions as needed
from annals.domain.subscriptions.index_conditions import IndexConditions
from annals.domain.values.json_pointer import join_pointer

#: The maximum nesting depth of filters, and their maximum number in one subscription (SUB-408).
MAX_DEPTH: Final = 32
MAX_FILTERS: Final = 500

#: Returns whether an event matches.
EventPredicate = Callable[[ContextAttributes], bool]


class FilterError(ValueError):
    """The JSON is not a valid filter. pointer: a JSON Pointer to the invalid member.

    reason: the rule that it breaks.
    """

    def __init__(self, pointer: str, reason: str) -> None:
        self.pointer = pointer
        self.reason = reason
        super().__init__(f"{pointer}: {reason}")


@dataclass(frozen=True, slots=True)
class Filter:
    """matches: never raises. conditions: necessary conditions for a match; see `index_conditions.py`."""

    matches: EventPredicate
    conditions: IndexConditions = None


#: Creates the filter of a dialect from its argument, at a place.
FilterDialect = Callable[[Any, "_FilterPlace"], Filter]

#: The dialects by name; names are case-sensitive.
DIALECTS: Final[dict[str, FilterDialect]] = {}

_NAME: Final = re.compile(r"[a-z0-9]+\Z")


def compile_filters(filters: Any, pointer: str = "/filters") -> Filter:
    """One filter that combines a subscription's `filters`, from their JSON form; all of them have to match.

    pointer: their place in the document. None or an empty array matches every event.
    Raises: FilterError.
    """
    if filters is None or filters == []:
        return Filter(lambda _: True)
    return _compile_all(filters, _FilterPlace(pointer, 0, [0]))


def dialect(name: str) -> Callable[[FilterDialect], FilterDialect]:
    """Registers a function as a dialect."""

    def register(compile_dialect: FilterDialect) -> FilterDialect:
        DIALECTS[name] = compile_dialect
        return compile_dialect

    return register


@dataclass(frozen=True, slots=True)
class _FilterPlace:
    """A place in a tree of filters. filter_count: the number of filters so far, in the whole tree."""

    pointer: str
    depth: int
    filter_count: list[int]

    def child(self, step: str | int) -> _FilterPlace:
        return _FilterPlace(join_pointer(self.pointer, step), self.depth, self.filter_count)

    def descend(self) -> _FilterPlace:
        """The same place, one filter deeper. Raises: FilterError."""
        self.filter_count[0] += 1
        if self.filter_count[0] > MAX_FILTERS:
            raise FilterError(
                self.pointer, f"a subscription has at most {MAX_FILTERS} filters, those within others included"
            )
        if self.depth == MAX_DEPTH:
            raise FilterError(self.pointer, f"filters nest at most {MAX_DEPTH} deep")
        return _FilterPlace(self.pointer, self.depth + 1, self.filter_count)


def _compile_filter(value: Any, place: _FilterPlace) -> Filter:
    """A filter object: one dialect and its argument."""
    if not isinstance(value, dict):
        raise FilterError(place.pointer, "a filter has to be an object")
    if len(value) != 1:
        raise FilterError(
            place.pointer, f"a filter has one member, the name of its dialect, but this one has {len(value)}"
        )
    inner_place = place.descend()
    [(name, argument)] = value.items()
    if name not in DIALECTS:
        raise FilterError(
            inner_place.child(name).pointer, f"the dialect {name!r} is unknown; use one of: {', '.join(DIALECTS)}"
        )
    return DIALECTS[name](argument, inner_place.child(name))


@dialect("exact")
def _compile_exact(texts_by_attribute: Any, place: _FilterPlace) -> Filter:
    return _compile_comparison(texts_by_attribute, place, str.__eq__, needed.attribute_equals)


@dialect("prefix")
def _compile_prefix(texts_by_attribute: Any, place: _FilterPlace) -> Filter:
    return _compile_comparison(texts_by_attribute, place, str.startswith, needed.attribute_starts_with)


@dialect("suffix")
def _compile_suffix(texts_by_attribute: Any, place: _FilterPlace) -> Filter:
    return _compile_comparison(texts_by_attribute, place, str.endswith, lambda _name, _text: None)


def _compile_comparison(
    texts_by_attribute: Any,
    place: _FilterPlace,
    compare: Callable[[str, str], bool],
    make_conditions: Callable[[str, str], IndexConditions],
) -> Filter:
    """Compares several attributes, as canonical strings, with a text each (SUB-404 to SUB-406)."""
    if not isinstance(texts_by_attribute, dict) or not texts_by_attribute:
        raise FilterError(place.pointer, "an object with at least one attribute is needed")
    pairs = [
        (_check_name(name, place), _check_text(wanted, place.child(name)))
        for name, wanted in texts_by_attribute.items()
    ]

    def matches(event: ContextAttributes) -> bool:
        for name, expected in pairs:
            value = event.get(name)
            if value is None or not compare(value if type(value) is str else canonical_string(value), expected):
                return False
        return True

    return Filter(matches, needed.all_conditions(make_conditions(name, wanted) for name, wanted in pairs))


def _check_name(name: str, place: _FilterPlace) -> str:
    if not _NAME.match(name) or name == DATA_MEMBER:
        raise FilterError(place.child(name).pointer, f"{name!r} is not the name of a context attribute")
    return name


def _check_text(text: Any, place: _FilterPlace) -> str:
    if not isinstance(text, str) or not text:
        raise FilterError(place.pointer, "a string that is not empty is needed")
    return text


def _compile_several(value: Any, place: _FilterPlace) -> list[Filter]:
    if not isinstance(value, list) or not value:
        raise FilterError(place.pointer, "an array with at least one filter is needed")
    return [_compile_filter(item, place.child(index)) for index, item in enumerate(value)]


@dialect("all")
def _compile_all(value: Any, place: _FilterPlace) -> Filter:
    filters = _compile_several(value, place)
    if len(filters) == 1:
        return filters[0]
    tests = [child_filter.matches for child_filter in filters]

    def matches(event: ContextAttributes) -> bool:
        for child_matches in tests:  # noqa: SIM110 -- a generator would be one more call on the stack for each level
            if not child_matches(event):
                return False
        return True

    return Filter(matches, needed.all_conditions(child_filter.conditions for child_filter in filters))


@dialect("any")
def _compile_any(value: Any, place: _FilterPlace) -> Filter:
    filters = _compile_several(value, place)
    if len(filters) == 1:
        return filters[0]
    tests = [child_filter.matches for child_filter in filters]

    def matches(event: ContextAttributes) -> bool:
        for child_matches in tests:  # noqa: SIM110 -- as above
            if child_matches(event):
                return True
        return False

    return Filter(matches, needed.any_condition(child_filter.conditions for child_filter in filters))


@dialect("not")
def _compile_not(value: Any, place: _FilterPlace) -> Filter:
    child_matches = _compile_filter(value, place).matches
    return Filter(lambda event: not child_matches(event))


@dialect("sql")
def _compile_sql(value: Any, place: _FilterPlace) -> Filter:
    """An expression that results in true and has no error (SUB-421)."""
    if not isinstance(value, str) or not value:
        raise FilterError(place.pointer, "an expression is needed as a string that is not empty")
    expression = parse_expression(value, place.pointer)
    return Filter(expression.matches, needed.expression_conditions(expression.tree))


def parse_expression(text: str, pointer: str) -> cesql.CesqlExpression:
    """An expression that can be a filter. Raises: FilterError for bad syntax and for unknown functions (SUB-422)."""
    try:
        expression = cesql.compile_expression(text)
    except cesql.ParseError as error:
        raise FilterError(pointer, str(error)) from None
    for call in expression.unknown_functions:
        reason = f"no function {call.name} takes {len(call.arguments)} arguments"
        raise FilterError(pointer, str(cesql.ParseError(reason, text, call.position)))
    return expression

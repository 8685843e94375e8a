"""Evaluates filters on an entity's JSON, where `by_index` uses the `attribute` table.

It decides what the index cannot: expressions that its keys leave open, and past images that it no longer holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import orjson

from domain.filters import FilterExpression, FilterValue, Operator, Sort
from domain.filters.comparison import compare_numbers, sort_key, text_sort_key
from domain.values import json_text
from domain.values.dot_path import PathWildcard, Step, find
from projections.entities.leaves import TEXT_LIMIT
from projections.entities.rows import EntityRow


def matches(expression: FilterExpression, row: EntityRow, base: str) -> bool:
    """Whether an entity of the expression's type meets it. base: absolute URL of the registry."""
    found = any(_meets(expression, value) for value in _values(expression, row, base))
    return found is not expression.operator.is_negative


def sort_key_of(row: EntityRow, sort: Sort) -> tuple[tuple[int, float, str], str]:
    """The sort key of an entity; keys sort in ascending order."""
    if not sort.path:
        return (0, 0.0, ""), row.tree_key
    value = find(parse_attributes(row), sort.path)
    if isinstance(value, float):
        value = find(json_text.loads_trusted(row.attributes), sort.path)
    return sort_key(value, TEXT_LIMIT), row.tree_key


def parse_attributes(row: EntityRow) -> Any:
    """The entity's attributes, for callers that need no exact numbers: floats in them may be rounded."""
    try:
        found = orjson.loads(row.attributes)
    except orjson.JSONDecodeError:
        return json_text.loads(row.attributes)
    return found


def _values(expression: FilterExpression, row: EntityRow, base: str) -> Iterator[Any]:
    if expression.derived:
        start = base if expression.derived.absolute else ""
        return iter((f"{start}{row.xid}{expression.derived.suffix}",))
    exact = expression.sought.number is not None
    return _reached(json_text.loads_trusted(row.attributes) if exact else parse_attributes(row), expression.path)


def _reached(value: Any, path: Sequence[Step]) -> Iterator[Any]:
    """All non-null values at the end of a path."""
    if value is None:
        return
    if not path:
        yield value
        return
    step, *rest = path
    match step, value:
        case PathWildcard.MEMBER, dict():
            inner = list(value.values())
        case PathWildcard.ITEM, list():
            inner = value
        case str(), dict():
            inner = [value.get(step)]
        case int(), list() if step < len(value):
            inner = [value[step]]
        case _:
            return
    for each in inner:
        yield from _reached(each, rest)


def _meets(expression: FilterExpression, value: Any) -> bool:
    """Whether a value meets the positive form of an expression."""
    operator, sought = expression.operator.positive, expression.sought
    if operator is Operator.PRESENT:
        return True
    if sought.has_wildcards:
        return isinstance(value, str) and sought.matches_text(text_sort_key(value))
    sign = _sign(value, sought)
    return sign is not None and sign in operator.value


def _sign(value: Any, sought: FilterValue) -> int | None:
    """-1, 0 or 1 if a value is below, equal to or above the sought one; None if they cannot be compared."""
    match value:
        case bool():
            return None if sought.boolean is None else (value > sought.boolean) - (value < sought.boolean)
        case str() if sought.text is not None:
            text = text_sort_key(value)
            return (text > sought.text) - (text < sought.text)
        case int() | float() | Decimal() if sought.number is not None:
            return compare_numbers(value, sought.number)
    return None

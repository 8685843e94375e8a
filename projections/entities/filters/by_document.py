"""Evaluates filters on an entity's JSON, where `by_index` uses the `attribute` table.

It decides what the index cannot: expressions that its keys leave open, and past images that it no longer holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import orjson

from annals.domain.filters import FilterExpression, FilterValue, Operator, Sort
from annals.domain.filters.comparison import compare_numbers, fold_text, text_sort_key
from annals.domain.values import json_text
from annals.domain.values.dot_path import PathWildcard, Step, find
from annals.projections.entities.index_values import EMPTY_VALUE, scalar_value
from annals.projections.entities.rows import EntityRow


def matches(expression: FilterExpression, row: EntityRow, base_url: str) -> bool:
    """Whether an entity of the expression's type meets it. base_url: absolute URL of the registry."""
    has_match = any(_is_match(expression, value) for value in _attribute_values(expression, row, base_url))
    return has_match is not expression.operator.is_negative


def sort_key_of(row: EntityRow, sort: Sort) -> tuple[bytes, str]:
    """The sort key of an entity; keys sort in ascending order."""
    if not sort.path:
        return EMPTY_VALUE, row.tree_key
    value = find(parse_attributes(row), sort.path)
    if isinstance(value, float):
        value = find(json_text.loads_trusted(row.attributes), sort.path)
    return scalar_value(value), row.tree_key


def parse_attributes(row: EntityRow) -> Any:
    """The entity's attributes, for callers that need no exact numbers: floats in them may be rounded."""
    try:
        attributes = orjson.loads(row.attributes)
    except orjson.JSONDecodeError:
        return json_text.loads(row.attributes)
    return attributes


def _attribute_values(expression: FilterExpression, row: EntityRow, base_url: str) -> Iterator[Any]:
    if expression.derived_attribute:
        prefix = base_url if expression.derived_attribute.is_url else ""
        return iter((f"{prefix}{row.xid}{expression.derived_attribute.suffix}",))
    needs_exact_numbers = expression.value.number is not None
    return _values_at_path(
        json_text.loads_trusted(row.attributes) if needs_exact_numbers else parse_attributes(row), expression.path
    )


def _values_at_path(value: Any, path: Sequence[Step]) -> Iterator[Any]:
    """All non-null values at the end of a path."""
    if value is None:
        return
    if not path:
        yield value
        return
    step, *remaining_steps = path
    match step, value:
        case PathWildcard.MEMBER, dict():
            children = list(value.values())
        case PathWildcard.ITEM, list():
            children = value
        case str(), dict():
            children = [value.get(step)]
        case int(), list() if step < len(value):
            children = [value[step]]
        case _:
            return
    for child in children:
        yield from _values_at_path(child, remaining_steps)


def _is_match(expression: FilterExpression, value: Any) -> bool:
    """Whether a value meets the positive form of an expression."""
    operator, filter_value = expression.operator.positive, expression.value
    if operator is Operator.PRESENT:
        return True
    if filter_value.has_wildcards:
        return isinstance(value, str) and filter_value.matches_text(fold_text(value))
    sign = _compare(value, filter_value)
    return sign is not None and sign in operator.value


def _compare(value: Any, filter_value: FilterValue) -> int | None:
    """-1, 0 or 1 if a value is below, equal to or above the filter's value; None if they cannot be compared."""
    match value:
        case bool():
            return (
                None
                if filter_value.boolean is None
                else (value > filter_value.boolean) - (value < filter_value.boolean)
            )
        case str() if filter_value.text is not None:
            text = text_sort_key(value)
            return (text > filter_value.text) - (text < filter_value.text)
        case int() | float() | Decimal() if filter_value.number is not None:
            return compare_numbers(value, filter_value.number)
    return None

"""Validation of single values against a schema, for the values of an enum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.values import (
    equality_key,
    has_format,
    is_multiple,
    kind_of_value,
    matches_pattern,
    to_decimal,
)


def accepts_value(node: SchemaNode, value: Any) -> bool | None:
    """Whether a schema allows a value; None where this code cannot decide it. Raises: RecursionError."""
    return _combine_all(_value_verdicts(node, value))


def _combine_all(results: Iterable[bool | None]) -> bool | None:
    """False if any result is False, else None if one is None, else True."""
    combined: bool | None = True
    for result in results:
        if result is False:
            return False
        combined = combined if result else None
    return combined


def _combine_any(results: Iterable[bool | None]) -> bool | None:
    return _negate(_combine_all(_negate(result) for result in results))


def _negate(result: bool | None) -> bool | None:
    return None if result is None else not result


def _value_verdicts(node: SchemaNode, value: Any) -> Iterator[bool | None]:
    kind = kind_of_value(value)
    yield not node.never
    yield node.kinds is None or kind in node.kinds
    yield node.allowed is None or equality_key(value) in node.allowed
    yield None if node.remote is not None or node.others else True
    yield from _in_place_verdicts(node, value)
    match kind:
        case "string":
            yield from _string_verdicts(node, value)
        case "array":
            yield from _array_verdicts(node, value)
        case "object":
            yield from _object_verdicts(node, value)
        case "integer" | "fraction":
            yield from _number_verdicts(node, to_decimal(value))


def _in_place_verdicts(node: SchemaNode, value: Any) -> Iterator[bool | None]:
    if node.ref is not None:
        yield accepts_value(node.ref, value)
    yield from (accepts_value(subschema, value) for subschema in node.all_of)
    if node.any_of:
        yield _combine_any(accepts_value(subschema, value) for subschema in node.any_of)
    if node.one_of:
        results = [accepts_value(subschema, value) for subschema in node.one_of]
        yield False if results.count(True) > 1 else None if None in results else True in results
    if node.negated is not None:
        yield _negate(accepts_value(node.negated, value))
    if node.condition is not None:
        condition_result = accepts_value(node.condition, value)
        branch_results = [
            True if subschema is None else accepts_value(subschema, value) for subschema in (node.then, node.otherwise)
        ]
        yield (
            branch_results[0]
            if condition_result
            else branch_results[1]
            if condition_result is False
            else _combine_all(branch_results)
        )


def _string_verdicts(node: SchemaNode, value: str) -> Iterator[bool | None]:
    yield node.min_length <= len(value)
    yield node.max_length is None or len(value) <= node.max_length
    yield from (matches_pattern(pattern, value) for pattern in node.patterns)
    yield True if node.precision is None and node.scale is None else None
    for name, annotation in node.marks:
        # Only some validators assert formats: a text with the format is valid in all of them, others may be.
        yield True if name == "format" and has_format(annotation, value) else None


def _number_verdicts(node: SchemaNode, value: Decimal) -> Iterator[bool | None]:
    if node.lower is not None:
        yield node.lower[0] < value or (node.lower[0] == value and not node.lower[1])
    if node.upper is not None:
        yield value < node.upper[0] or (node.upper[0] == value and not node.upper[1])
    yield from (is_multiple(divisor, value) for divisor in node.multiples)


def _array_verdicts(node: SchemaNode, value: list[Any]) -> Iterator[bool | None]:
    yield node.min_items <= len(value)
    yield node.max_items is None or len(value) <= node.max_items
    yield not node.unique or len({equality_key(item) for item in value}) == len(value)
    for index, item in enumerate(value):
        subschema = node.prefix[index] if index < len(node.prefix) else node.items
        yield True if subschema is None else accepts_value(subschema, item)
    if node.contains is not None:
        results = [accepts_value(node.contains, item) for item in value]
        certain_matches, possible_matches = results.count(True), len(results) - results.count(False)
        yield (
            None
            if certain_matches != possible_matches
            else node.min_contains
            <= certain_matches
            <= (len(value) if node.max_contains is None else node.max_contains)
        )
    yield True if node.unevaluated_items is None else None


def _object_verdicts(node: SchemaNode, value: dict[str, Any]) -> Iterator[bool | None]:
    yield node.required <= value.keys()
    yield node.min_properties <= len(value)
    yield node.max_properties is None or len(value) <= node.max_properties
    for name, names in node.dependent_required.items():
        yield name not in value or names <= value.keys()
    for name, subschema in node.dependent_schemas.items():
        yield True if name not in value else accepts_value(subschema, value)
    for name, item in value.items():
        if node.names is not None:
            yield accepts_value(node.names, name)
        yield from _member_verdicts(node, name, item)
    yield True if node.unevaluated is None else None


def _member_verdicts(node: SchemaNode, name: str, item: Any) -> Iterator[bool | None]:
    pattern_results = [matches_pattern(pattern, name) for pattern in node.by_pattern]
    if name in node.properties:
        yield accepts_value(node.properties[name], item)
    for pattern_result, subschema in zip(pattern_results, node.by_pattern.values(), strict=True):
        if pattern_result is not False:
            result = accepts_value(subschema, item)
            yield result if pattern_result or result else None
    if name not in node.properties and node.additional is not None and not any(pattern_results):
        result = accepts_value(node.additional, item)
        yield result if None not in pattern_results or result else None

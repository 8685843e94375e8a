"""A normal form of JSON Schema documents: equal bytes for documents that differ in spelling only."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from annals.domain.formats.jsonschema.values import to_decimal
from annals.domain.values import json_text

_SCHEMA_KEYWORDS: Final = frozenset(
    {"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"}
    | {"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems"}
)
_SCHEMA_MAP_KEYWORDS: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


def normal_form(document: Any) -> bytes:
    """UTF-8 JSON without white space and `$comment`, with sorted members and the shortest spelling of numbers.

    `required` and lists of types are sets and become sorted; a list of one type becomes that type. Annotations stay: a
    title or a default does not change which values are valid, but it is part of the content. Cost: n log n.
    """
    return json_text.dumps(_normal_schema(document))


def _normal_schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_normal_schema(item) for item in value]
    if not isinstance(value, dict):
        return normalize_data(value)
    return {name: _normal_keyword(name, value[name]) for name in sorted(value) if name != "$comment"}


def _normal_keyword(name: str, value: Any) -> Any:
    if name in _SCHEMA_KEYWORDS:
        return _normal_schema(value)
    if name in _SCHEMA_MAP_KEYWORDS and isinstance(value, dict):
        return {member: _normal_member(value[member]) for member in sorted(value)}
    if name in {"required", "type"} and isinstance(value, list) and all(isinstance(item, str) for item in value):
        sorted_names = sorted(set(value))
        return sorted_names[0] if name == "type" and len(sorted_names) == 1 else sorted_names
    return normalize_data(value)


def _normal_member(value: Any) -> Any:
    """A schema, or a list of required names, which becomes sorted because its order has no meaning."""
    return sorted(value) if isinstance(value, list) else _normal_schema(value)


def normalize_data(value: Any) -> Any:
    """Data with sorted members and the shortest spelling of numbers."""
    if isinstance(value, list):
        return [normalize_data(item) for item in value]
    if isinstance(value, dict):
        return {name: normalize_data(value[name]) for name in sorted(value)}
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return value
    return _normal_number(to_decimal(value))


def _normal_number(value: Decimal) -> int | Decimal:
    """The number without redundant digits. `Decimal.normalize` is not usable: it rounds."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if not value:
        return 0
    if exponent >= 0 and value.adjusted() < 18:
        return int(value)
    digit_count = len(digits)
    while digits[digit_count - 1] == 0:
        digit_count -= 1
    normalized = Decimal((sign, digits[:digit_count], exponent + len(digits) - digit_count))
    return (
        int(normalized) if normalized.adjusted() < 18 and normalized == normalized.to_integral_value() else normalized
    )

"""JSON values as schemas compare them, independent of their spelling."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import jsonschema_rs

from annals.domain.formats.jsonschema.patterns import to_unicode_pattern

#: The kinds of values. Every JSON Schema type is a set of kinds; `number` has two.
KINDS: Final = frozenset({"null", "boolean", "object", "array", "string", "integer", "fraction"})
NUMBERS: Final = frozenset({"integer", "fraction"})
#: Numbers with more digits before or after the point are compared, but not used in calculations.
_MAX_DIGITS: Final = 400
#: Maximum characters of a pattern that is tried in a second spelling; people do not write longer ones.
_MAX_PATTERN_LENGTH: Final = 1 << 16


def kinds_of_type(name: str) -> frozenset[str]:
    """The kinds that belong to a JSON Schema type."""
    return NUMBERS if name == "number" else frozenset({name})


def kind_of_value(value: Any) -> str:
    """The kind of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "integer" if _is_whole(to_decimal(value)) else "fraction"


def to_decimal(value: int | float | Decimal) -> Decimal:
    """A number as a Decimal, with the digits of its shortest text."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def equality_key(value: Any) -> Hashable:
    """A key that is the same exactly for values equal in JSON Schema: 1 and 1.0 are equal, 1 and true are not."""
    match value:
        case None | bool() | str():
            return (kind_of_value(value), value)
        case list():
            return ("array", tuple(equality_key(item) for item in value))
        case dict():
            return ("object", frozenset((name, equality_key(item)) for name, item in value.items()))
    return ("number", to_decimal(value))


def is_multiple(divisor: Decimal, value: Decimal) -> bool | None:
    """Whether a number is a multiple of another; None where the calculation would take too long."""
    if divisor == value or not value:
        return True
    if (
        max(abs(divisor.adjusted()), abs(value.adjusted()), _fraction_digits(divisor), _fraction_digits(value))
        > _MAX_DIGITS
    ):
        return None
    return Fraction(value) % Fraction(divisor) == 0


def matches_pattern(pattern: str, text: str) -> bool | None:
    """Whether a part of a text matches a pattern; None where the library gives up. Cost: linear, or bounded."""
    validator = _pattern_validator(pattern)
    if validator is None:
        return None
    try:
        return bool(validator.is_valid(text))
    except ValueError:
        return None


def supported_spelling(pattern: str) -> str | None:
    """An ECMA-262 expression in a spelling that the library supports; None where it is no expression."""
    return next((spelling for spelling in _spellings(pattern) if _REGEX_VALIDATOR.is_valid(spelling)), None)


def is_pattern(pattern: str) -> bool:
    """Whether a text is a regular expression of ECMA-262, with its `u` flag or without."""
    return supported_spelling(pattern) is not None


def has_format(name: str, text: str) -> bool | None:
    """Whether a text has a `format`; None for formats that the library does not check."""
    return bool(_format_validator(name).is_valid(text)) if name in _KNOWN_FORMATS else None


_REGEX_VALIDATOR: Final = jsonschema_rs.Draft7Validator({"format": "regex"}, validate_formats=True)
_KNOWN_FORMATS: Final = frozenset({"date", "date-time", "time", "uuid", "ipv4", "ipv6", "email", "uri", "regex"})


@lru_cache(maxsize=1024)
def _pattern_validator(pattern: str) -> Any:
    for spelling in _spellings(pattern):
        try:
            return jsonschema_rs.Draft7Validator({"pattern": spelling})
        except ValueError:
            pass
    return None


def _spellings(pattern: str) -> Iterator[str]:
    yield pattern
    if len(pattern) <= _MAX_PATTERN_LENGTH:
        yield to_unicode_pattern(pattern)


@lru_cache(maxsize=32)
def _format_validator(name: str) -> Any:
    return jsonschema_rs.Draft201909Validator({"format": name}, validate_formats=True)


def _is_whole(value: Decimal) -> bool:
    if _fraction_digits(value) > _MAX_DIGITS:
        return False
    return value.as_tuple().exponent >= 0 or value == value.to_integral_value()  # type: ignore[operator]


def _fraction_digits(value: Decimal) -> int:
    """The number of digits that the exponent puts after the point."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)

"""Values of expressions, their errors, and casts between types.

Spec: cesql 1.0.0, sections 3.1 to 3.3 and 3.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

#: String, Integer or Boolean. Compare types with `type()`, because a Boolean is also an `int` in Python.
CesqlValue = str | int | bool
#: The context attributes of an event, by name.
ContextAttributes = Mapping[str, CesqlValue]

MIN_INTEGER: Final = -(2**31)
MAX_INTEGER: Final = 2**31 - 1


class ErrorKind(StrEnum):
    """The kinds of errors; the values are their names in the conformance tests."""

    PARSE = "parse"
    MATH = "math"
    CAST = "cast"
    MISSING_ATTRIBUTE = "missingAttribute"
    MISSING_FUNCTION = "missingFunction"
    FUNCTION_EVALUATION = "functionEvaluation"
    GENERIC = "generic"


class ErrorValue:
    """A value with the errors that occurred while it was computed, each kind once. It equals only itself."""

    __slots__ = ("errors", "value")

    def __init__(self, value: CesqlValue, *errors: ErrorKind) -> None:
        self.value = value
        self.errors = tuple(dict.fromkeys(errors))


#: The result of a part of an expression.
ValueOrError = CesqlValue | ErrorValue

#: Zeros are matched possessively, so a long text is read once.
_INTEGER: Final = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,10})\Z")
_BOOLEANS: Final = {"true": True, "false": False}
_MAX_BOOLEAN_LENGTH: Final = max(map(len, _BOOLEANS))
MISSING: Final = ErrorValue(False, ErrorKind.MISSING_ATTRIBUTE)

#: Attributes that the CloudEvents spec defines; in expressions all of them are strings.
SPEC_ATTRIBUTES: Final = frozenset(
    ("id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject", "time"),
)
#: Attributes that every valid event has.
REQUIRED_ATTRIBUTES: Final = frozenset(("id", "source", "specversion", "type"))
#: The member next to the context attributes in JSON; expressions cannot read it (SUB-645).
DATA_MEMBER: Final = "data"


def parse_integer(text: str) -> int | None:
    """The Integer in a text; None where the text is no integer or out of range."""
    match = _INTEGER.match(text)
    if match is None:
        return None
    number = int(match[1] + (match[2] or "0"))
    return number if MIN_INTEGER <= number <= MAX_INTEGER else None


def canonical_string(value: object) -> str:
    """The canonical string of an attribute's value."""
    if isinstance(value, str):
        return str(value)
    try:
        return _BOOLEAN_TEXTS[value] if isinstance(value, bool) else str(value)
    except (ValueError, RecursionError):  # not a value of a CloudEvent, and Python refuses to convert it
        return ""


def attribute_value(value: Any, name: str) -> ValueOrError:
    """The value of an attribute in an expression, for attributes that are not plain strings.

    An Integer or a Boolean keeps its type unless the spec defines the attribute; all other values become strings.
    """
    if value is None:
        return MISSING
    value_type = type(value)
    if name not in SPEC_ATTRIBUTES and (
        value_type is bool or (value_type is int and MIN_INTEGER <= value <= MAX_INTEGER)
    ):
        return value  # type: ignore[no-any-return]
    return canonical_string(value)


def cast_value(value: CesqlValue, target_type: type[CesqlValue]) -> ValueOrError:
    """A value converted to a type; if that fails, an error with the zero value of the type."""
    cast = _CASTS.get((type(value), target_type))
    return value if cast is None else cast(value)


def _to_integer(value: Any) -> ValueOrError:
    number = parse_integer(value)
    return _NO_INTEGER if number is None else number


def _to_boolean(value: Any) -> ValueOrError:
    return _BOOLEANS.get(value.lower(), _NO_BOOLEAN) if len(value) <= _MAX_BOOLEAN_LENGTH else _NO_BOOLEAN


_NO_INTEGER: Final = ErrorValue(0, ErrorKind.CAST)
_NO_BOOLEAN: Final = ErrorValue(False, ErrorKind.CAST)
_BOOLEAN_TEXTS: Final = {True: "true", False: "false"}
_CASTS: Final[Mapping[tuple[type, type], Callable[[Any], ValueOrError]]] = {
    (str, int): _to_integer,
    (str, bool): _to_boolean,
    (int, str): str,
    (int, bool): bool,
    (bool, str): _BOOLEAN_TEXTS.__getitem__,
    (bool, int): int,
}

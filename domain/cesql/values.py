"""Values of expressions, the errors that go with them, and casts from one type to another.

Spec: cesql 1.0.0, sections 3.1 to 3.3 and 3.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

#: String, Integer or Boolean; the types are told apart by their class, as a Boolean is an `int` to Python.
Value = str | int | bool
#: The context attributes of an event by name.
Event = Mapping[str, Value]

LEAST: Final = -(2**31)
MOST: Final = 2**31 - 1


class Error(StrEnum):
    """The kinds of errors; the values are their names in the conformance kit."""

    PARSE = "parse"
    MATH = "math"
    CAST = "cast"
    MISSING_ATTRIBUTE = "missingAttribute"
    MISSING_FUNCTION = "missingFunction"
    FUNCTION_EVALUATION = "functionEvaluation"
    GENERIC = "generic"


class Errored:
    """A value with the errors that led to it, each kind once. It is equal to nothing but itself."""

    __slots__ = ("errors", "value")

    def __init__(self, value: Value, *errors: Error) -> None:
        self.value = value
        self.errors = tuple(dict.fromkeys(errors))


#: What a part of an expression comes to.
Outcome = Value | Errored

#: Zeros are possessive, so a long text is read once.
_INTEGER: Final = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]{0,10})\Z")
_TRUTH: Final = {"true": True, "false": False}
_LONGEST_TRUTH: Final = max(map(len, _TRUTH))
_MISSING: Final = Errored(False, Error.MISSING_ATTRIBUTE)

#: Attributes that the CloudEvents spec defines: all are strings to an expression.
DEFINED: Final = frozenset(
    ("id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject", "time"),
)
#: Attributes that every valid event has.
REQUIRED: Final = frozenset(("id", "source", "specversion", "type"))
#: What lies beside the context attributes in JSON; no expression sees it (SUB-645).
DATA: Final = "data"


def integer(text: str) -> int | None:
    """The Integer that a text means; None for one that means none or is out of range."""
    found = _INTEGER.match(text)
    if found is None:
        return None
    number = int(found[1] + (found[2] or "0"))
    return number if LEAST <= number <= MOST else None


def string(value: object) -> str:
    """The canonical string of an attribute's value."""
    if isinstance(value, str):
        return str(value)
    try:
        return _TEXTS[value] if isinstance(value, bool) else str(value)
    except (ValueError, RecursionError):  # no value of a CloudEvent, and nothing that Python would write out
        return ""


def attribute(value: Any, name: str) -> Outcome:
    """What an attribute is to an expression, where it is not a plain string anyway.

    An Integer or a Boolean keeps its type unless the spec defines the attribute; everything else is a string.
    """
    if value is None:
        return _MISSING
    kind = type(value)
    if name not in DEFINED and (kind is bool or (kind is int and LEAST <= value <= MOST)):
        return value  # type: ignore[no-any-return]
    return string(value)


def cast(value: Value, to: type[Value]) -> Outcome:
    """A value as one of a type; with an error, the zero value of it."""
    made = _CASTS.get((type(value), to))
    return value if made is None else made(value)


def _to_integer(value: Any) -> Outcome:
    number = integer(value)
    return _NO_INTEGER if number is None else number


def _to_boolean(value: Any) -> Outcome:
    return _TRUTH.get(value.lower(), _NO_BOOLEAN) if len(value) <= _LONGEST_TRUTH else _NO_BOOLEAN


_NO_INTEGER: Final = Errored(0, Error.CAST)
_NO_BOOLEAN: Final = Errored(False, Error.CAST)
_TEXTS: Final = {True: "true", False: "false"}
_CASTS: Final[Mapping[tuple[type, type], Callable[[Any], Outcome]]] = {
    (str, int): _to_integer,
    (str, bool): _to_boolean,
    (int, str): str,
    (int, bool): bool,
    (bool, str): _TEXTS.__getitem__,
    (bool, int): int,
}

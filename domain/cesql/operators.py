"""Operators on values. Values of the expected type take a fast path, all others go through `apply_function`.

Spec: cesql 1.0.0, sections 3.4 and 3.7; requirements SUB-611 to SUB-614.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

from annals.domain.cesql.functions import CesqlFunction, apply_function
from annals.domain.cesql.values import (
    MAX_INTEGER,
    MIN_INTEGER,
    CesqlValue,
    ErrorKind,
    ErrorValue,
    ValueOrError,
    cast_value,
)

#: Functions of one value, and of two.
UnaryFunction = Callable[[ValueOrError], ValueOrError]
BinaryFunction = Callable[[ValueOrError, ValueOrError], ValueOrError]

_OVERFLOW: Final = ErrorValue(0, ErrorKind.MATH)


def _quotient(left: int, right: int) -> ValueOrError:
    if right == 0:
        return _OVERFLOW
    quotient = abs(left) // abs(right)
    return in_range(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left: int, right: int) -> ValueOrError:
    if right == 0:
        return _OVERFLOW
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def in_range(number: int) -> ValueOrError:
    """The number as an Integer, or an error where it does not fit in 32 bits."""
    return number if MIN_INTEGER <= number <= MAX_INTEGER else _OVERFLOW


def _arithmetic(compute: Callable[[int, int], ValueOrError]) -> BinaryFunction:
    return _on_integers(CesqlFunction((int, int), int, compute))


def _ordering(compute: Callable[[int, int], bool]) -> BinaryFunction:
    return _on_integers(CesqlFunction((int, int), bool, compute))


def _on_integers(function: CesqlFunction) -> BinaryFunction:
    compute = function.compute

    def apply(left: ValueOrError, right: ValueOrError) -> ValueOrError:
        if type(left) is int and type(right) is int:
            return compute(left, right)
        return apply_function(function, (left, right))

    return apply


def equal(left: ValueOrError, right: ValueOrError) -> ValueOrError:
    """Whether values are equal; the type of the right one decides how they compare."""
    if type(left) is type(right) and not isinstance(left, ErrorValue):
        return left == right
    return apply_function(_EQUALITIES[type(right)], (left, right))


def not_equal(left: ValueOrError, right: ValueOrError) -> ValueOrError:
    """Whether values differ: the opposite of `equal`."""
    if type(left) is type(right) and not isinstance(left, ErrorValue):
        return left != right
    return apply_function(_INEQUALITIES[type(right)], (left, right))


# If the right value is an error, any type will do: nothing is computed.
_COMPARISON_TYPES: Final[Mapping[type, type[CesqlValue]]] = {str: str, int: int, bool: bool, ErrorValue: bool}
_EQUALITIES: Final = {kind: CesqlFunction((to, to), bool, operator.eq) for kind, to in _COMPARISON_TYPES.items()}
_INEQUALITIES: Final = {
    kind: CesqlFunction(each.parameter_types, bool, operator.ne) for kind, each in _EQUALITIES.items()
}

BINARY: Final[dict[str, BinaryFunction]] = {
    "=": equal,
    "!=": not_equal,
    "<>": not_equal,
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
    "+": _arithmetic(lambda left, right: in_range(left + right)),
    "-": _arithmetic(lambda left, right: in_range(left - right)),
    "*": _arithmetic(lambda left, right: in_range(left * right)),
    "/": _arithmetic(_quotient),
    "%": _arithmetic(_remainder),
}

_TWO_BOOLEANS: Final = (bool, bool)
LOGIC: Final = {
    "and": CesqlFunction(_TWO_BOOLEANS, bool, operator.and_),
    "or": CesqlFunction(_TWO_BOOLEANS, bool, operator.or_),
    "xor": CesqlFunction(_TWO_BOOLEANS, bool, operator.xor),
}
#: The left value that decides the result without the right one; `xor` has none.
SHORT_CIRCUITS: Final = {"and": False, "or": True}

_BOOLEAN_CAST: Final = CesqlFunction((bool,), bool, lambda value: value)
_UNARY_FUNCTIONS: Final = {
    "not": CesqlFunction((bool,), bool, operator.not_),
    "-": CesqlFunction((int,), int, lambda value: in_range(-value)),
}


def unary_function(sign: str) -> UnaryFunction:
    """The function for the unary operator `not` or `-`."""
    function = _UNARY_FUNCTIONS[sign]
    return lambda value: apply_function(function, (value,))


def to_boolean(value: ValueOrError) -> ValueOrError:
    """A value as a Boolean, converted like by `BOOL`."""
    return value if value is True or value is False else apply_function(_BOOLEAN_CAST, (value,))


def is_true(value: ValueOrError) -> bool:
    """Whether a value, with or without errors, is true as a Boolean."""
    unwrapped = value.value if isinstance(value, ErrorValue) else value
    cast = cast_value(unwrapped, bool)
    return cast is True


def like_function(matches: Callable[[str], bool], negated: bool) -> UnaryFunction:
    """A function that decides whether a text matches a pattern; negated: whether it does not."""
    function = CesqlFunction((str,), bool, (lambda text: not matches(text)) if negated else matches)
    compute = function.compute
    return lambda value: compute(value) if type(value) is str else apply_function(function, (value,))

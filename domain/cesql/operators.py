"""Operators on values: each takes a value of the right type by a short way and all others by `apply`.

Spec: cesql 1.0.0, sections 3.4 and 3.7; requirements SUB-611 to SUB-614.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

from domain.cesql.functions import Function, apply
from domain.cesql.values import LEAST, MOST, Error, Errored, Outcome, Value, cast

#: What an operator makes of a value, and of two.
One = Callable[[Outcome], Outcome]
Two = Callable[[Outcome, Outcome], Outcome]

_OVERFLOW: Final = Errored(0, Error.MATH)


def _quotient(left: int, right: int) -> Outcome:
    if right == 0:
        return _OVERFLOW
    found = abs(left) // abs(right)
    return in_range(found if (left < 0) == (right < 0) else -found)


def _remainder(left: int, right: int) -> Outcome:
    if right == 0:
        return _OVERFLOW
    found = abs(left) % abs(right)
    return -found if left < 0 else found


def in_range(number: int) -> Outcome:
    """An Integer, or the error of one that 32 bits do not hold."""
    return number if LEAST <= number <= MOST else _OVERFLOW


def _arithmetic(compute: Callable[[int, int], Outcome]) -> Two:
    return _on_integers(Function((int, int), int, compute))


def _ordering(compute: Callable[[int, int], bool]) -> Two:
    return _on_integers(Function((int, int), bool, compute))


def _on_integers(function: Function) -> Two:
    compute = function.compute

    def both(left: Outcome, right: Outcome) -> Outcome:
        if type(left) is int and type(right) is int:
            return compute(left, right)
        return apply(function, (left, right))

    return both


def equal(left: Outcome, right: Outcome) -> Outcome:
    """Whether values are equal; the right one says as what they are compared."""
    if type(left) is type(right) and not isinstance(left, Errored):
        return left == right
    return apply(_EQUALITIES[type(right)], (left, right))


def different(left: Outcome, right: Outcome) -> Outcome:
    """The contrary of `equal`."""
    if type(left) is type(right) and not isinstance(left, Errored):
        return left != right
    return apply(_INEQUALITIES[type(right)], (left, right))


# Where the right value is an error, its type does not matter: nothing is computed.
_COMPARED: Final[Mapping[type, type[Value]]] = {str: str, int: int, bool: bool, Errored: bool}
_EQUALITIES: Final = {kind: Function((to, to), bool, operator.eq) for kind, to in _COMPARED.items()}
_INEQUALITIES: Final = {kind: Function(each.takes, bool, operator.ne) for kind, each in _EQUALITIES.items()}

BINARY: Final[dict[str, Two]] = {
    "=": equal,
    "!=": different,
    "<>": different,
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

_BOTH: Final = (bool, bool)
LOGIC: Final = {
    "and": Function(_BOTH, bool, operator.and_),
    "or": Function(_BOTH, bool, operator.or_),
    "xor": Function(_BOTH, bool, operator.xor),
}
#: The left value with which the right one is not evaluated; `xor` has none.
DECIDED: Final = {"and": False, "or": True}

_TRUTH: Final = Function((bool,), bool, lambda value: value)
_UNARY: Final = {
    "not": Function((bool,), bool, operator.not_),
    "-": Function((int,), int, lambda value: in_range(-value)),
}


def unary(sign: str) -> One:
    """What `not` or `-` makes of a value."""
    function = _UNARY[sign]
    return lambda value: apply(function, (value,))


def truth(value: Outcome) -> Outcome:
    """A value as the Boolean that `BOOL` makes of it."""
    return value if value is True or value is False else apply(_TRUTH, (value,))


def holds(value: Outcome) -> bool:
    """Whether a value, with errors or without, is true as a Boolean."""
    plain = value.value if isinstance(value, Errored) else value
    made = cast(plain, bool)
    return made is True


def like(matches: Callable[[str], bool], negated: bool) -> One:
    """Whether a text matches a pattern, or does not."""
    function = Function((str,), bool, (lambda text: not matches(text)) if negated else matches)
    compute = function.compute
    return lambda value: compute(value) if type(value) is str else apply(function, (value,))

"""The functions of expressions: what they take and what they give.

Spec: cesql 1.0.0, section 3.5; SUB-631 and SUB-632 on what it leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from domain.cesql.values import LEAST, MOST, Error, Errored, Outcome, Value, cast

#: Characters that a function may make: a short expression could name a long attribute many times.
LARGEST: Final = 1 << 20

#: White space as Unicode defines it; Python's own idea has four control characters more.
_WHITE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" + (
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function or an operator. more: the type of any number of further arguments. result: its call gives the zero."""

    takes: tuple[type[Value], ...]
    result: type[Value]
    compute: Callable[..., Outcome]
    more: type[Value] | None = None

    def fits(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return count == len(self.takes) or (self.more is not None and count > len(self.takes))


def apply(function: Function, given: Sequence[Outcome]) -> Outcome:
    """What a function makes of values. With an error among them it does not compute; one of its casts does not stop it.

    Spec: cesql 1.0.0, sections 3.2 and 3.3; SUB-642.
    """
    received = [error for each in given if isinstance(each, Errored) for error in each.errors]
    if received:
        return Errored(function.result(), *received)
    found: list[Value] = []
    failed: tuple[Error, ...] = ()
    for place, value in enumerate(given):
        wanted = function.takes[place] if place < len(function.takes) else function.more
        assert wanted is not None and not isinstance(value, Errored)
        made = value if type(value) is wanted else cast(value, wanted)
        if isinstance(made, Errored):
            failed += made.errors
            made = made.value
        found.append(made)
    result = function.compute(*found)
    if not failed:
        return result
    if isinstance(result, Errored):
        return Errored(result.value, *failed, *result.errors)
    return Errored(result, *failed)


def find(name: str, count: int) -> Function | None:
    """The function of a name in upper case that takes so many arguments."""
    return next((each for each in FUNCTIONS.get(name, ()) if each.fits(count)), None)


def _same(value: Any) -> Any:
    return value


def _joined(separator: str, *texts: str) -> Outcome:
    if sum(map(len, texts)) + len(separator) * len(texts) > LARGEST:
        return Errored("", Error.FUNCTION_EVALUATION)
    return separator.join(texts)


def _left(text: str, count: int) -> Outcome:
    return Errored(text, Error.FUNCTION_EVALUATION) if count < 0 else text[:count]


def _right(text: str, count: int) -> Outcome:
    if count < 0:
        return Errored(text, Error.FUNCTION_EVALUATION)
    return text[max(0, len(text) - count) :]


def _substring(text: str, position: int, count: int = MOST) -> Outcome:
    if abs(position) > len(text) or count < 0:
        return Errored("", Error.FUNCTION_EVALUATION)
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + count]


def _absolute(number: int) -> Outcome:
    return Errored(MOST, Error.MATH) if number == LEAST else abs(number)


#: By name, with each number of arguments.
FUNCTIONS: Final[dict[str, tuple[Function, ...]]] = {
    "INT": (Function((int,), int, _same),),
    "BOOL": (Function((bool,), bool, _same),),
    "STRING": (Function((str,), str, _same),),
    "LENGTH": (Function((str,), int, len),),
    "CONCAT": (Function((), str, lambda *texts: _joined("", *texts), more=str),),
    "CONCAT_WS": (Function((str,), str, _joined, more=str),),
    "LOWER": (Function((str,), str, str.lower),),
    "UPPER": (Function((str,), str, str.upper),),
    "TRIM": (Function((str,), str, lambda text: text.strip(_WHITE)),),
    "LEFT": (Function((str, int), str, _left),),
    "RIGHT": (Function((str, int), str, _right),),
    "SUBSTRING": (Function((str, int), str, _substring), Function((str, int, int), str, _substring)),
    "ABS": (Function((int,), int, _absolute),),
}

"""The functions of expressions, with their parameter and result types.

Spec: cesql 1.0.0, section 3.5; SUB-631 and SUB-632 on what it leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.cesql.values import (
    MAX_INTEGER,
    MIN_INTEGER,
    CesqlValue,
    ErrorKind,
    ErrorValue,
    ValueOrError,
    cast_value,
)

#: Maximum characters of a result, because a short expression could repeat a long attribute many times.
MAX_RESULT: Final = 1 << 20

#: White space by Unicode's definition; Python's includes four more control characters.
_WHITESPACE: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" + (
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class CesqlFunction:
    """A function or an operator.

    result_type: type whose zero value errors yield. further_type: type of any further arguments.
    """

    parameter_types: tuple[type[CesqlValue], ...]
    result_type: type[CesqlValue]
    compute: Callable[..., ValueOrError]
    further_type: type[CesqlValue] | None = None

    def accepts_count(self, count: int) -> bool:
        """Whether the function accepts this number of arguments."""
        return count == len(self.parameter_types) or (
            self.further_type is not None and count > len(self.parameter_types)
        )


def apply_function(function: CesqlFunction, arguments: Sequence[ValueOrError]) -> ValueOrError:
    """The result of a function. An error among the arguments prevents the computation; a failed cast does not.

    Spec: cesql 1.0.0, sections 3.2 and 3.3; SUB-642.
    """
    argument_errors = [error for argument in arguments if isinstance(argument, ErrorValue) for error in argument.errors]
    if argument_errors:
        return ErrorValue(function.result_type(), *argument_errors)
    cast_arguments: list[CesqlValue] = []
    cast_errors: tuple[ErrorKind, ...] = ()
    for index, value in enumerate(arguments):
        wanted_type = (
            function.parameter_types[index] if index < len(function.parameter_types) else function.further_type
        )
        assert wanted_type is not None and not isinstance(value, ErrorValue)
        cast = value if type(value) is wanted_type else cast_value(value, wanted_type)
        if isinstance(cast, ErrorValue):
            cast_errors += cast.errors
            cast = cast.value
        cast_arguments.append(cast)
    result = function.compute(*cast_arguments)
    if not cast_errors:
        return result
    if isinstance(result, ErrorValue):
        return ErrorValue(result.value, *cast_errors, *result.errors)
    return ErrorValue(result, *cast_errors)


def find_function(name: str, count: int) -> CesqlFunction | None:
    """The function with a name, in upper case, that accepts this number of arguments; None where there is none."""
    return next((function for function in FUNCTIONS.get(name, ()) if function.accepts_count(count)), None)


def _identity(value: Any) -> Any:
    return value


def _join(separator: str, *texts: str) -> ValueOrError:
    if sum(map(len, texts)) + len(separator) * len(texts) > MAX_RESULT:
        return ErrorValue("", ErrorKind.FUNCTION_EVALUATION)
    return separator.join(texts)


def _left(text: str, count: int) -> ValueOrError:
    return ErrorValue(text, ErrorKind.FUNCTION_EVALUATION) if count < 0 else text[:count]


def _right(text: str, count: int) -> ValueOrError:
    if count < 0:
        return ErrorValue(text, ErrorKind.FUNCTION_EVALUATION)
    return text[max(0, len(text) - count) :]


def _substring(text: str, position: int, count: int = MAX_INTEGER) -> ValueOrError:
    if abs(position) > len(text) or count < 0:
        return ErrorValue("", ErrorKind.FUNCTION_EVALUATION)
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + count]


def _absolute(number: int) -> ValueOrError:
    return ErrorValue(MAX_INTEGER, ErrorKind.MATH) if number == MIN_INTEGER else abs(number)


#: Functions by name, one for each arity.
FUNCTIONS: Final[dict[str, tuple[CesqlFunction, ...]]] = {
    "INT": (CesqlFunction((int,), int, _identity),),
    "BOOL": (CesqlFunction((bool,), bool, _identity),),
    "STRING": (CesqlFunction((str,), str, _identity),),
    "LENGTH": (CesqlFunction((str,), int, len),),
    "CONCAT": (CesqlFunction((), str, lambda *texts: _join("", *texts), further_type=str),),
    "CONCAT_WS": (CesqlFunction((str,), str, _join, further_type=str),),
    "LOWER": (CesqlFunction((str,), str, str.lower),),
    "UPPER": (CesqlFunction((str,), str, str.upper),),
    "TRIM": (CesqlFunction((str,), str, lambda text: text.strip(_WHITESPACE)),),
    "LEFT": (CesqlFunction((str, int), str, _left),),
    "RIGHT": (CesqlFunction((str, int), str, _right),),
    "SUBSTRING": (CesqlFunction((str, int), str, _substring), CesqlFunction((str, int, int), str, _substring)),
    "ABS": (CesqlFunction((int,), int, _absolute),),
}

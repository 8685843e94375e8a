"""Comparison of attribute values in filters and sorts.

Texts compare without letter case, timestamps by their instant, numbers by value, and `false` is before `true`.
Spec: core 1.0-rc4, "Filter Flag", "Sort Flag".
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from typing import Final

Number = int | float | Decimal

#: Below this limit, a double represents every integer exactly.
_SAFE_INTEGER_LIMIT: Final = 2**53
#: The remainder of a number that equals its double.
NO_REMAINDER: Final = "1"
#: An offset that makes every exponent of a Decimal a positive number of 19 digits.
_EXPONENT_RANGE: Final = 2 * 10**18
#: Inverts digits, so that a larger remainder below the double sorts lower.
_NINES_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")

_TIMESTAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:(\.\d*?)0*)?Z\Z", re.ASCII)


def text_sort_key(text: str) -> str:
    """A folded text. The code point order of the results is the sort order of the texts.

    A timestamp in UTC sorts by its instant: its `Z` becomes `!`, which sorts below the dot of a fraction. NUL, which
    PostgreSQL cannot store, and the escape character for it keep their order.
    """
    if text[-1:] == "Z" and (timestamp := _TIMESTAMP.match(text)):
        whole_seconds, fraction = timestamp.groups()
        return f"{whole_seconds.lower()}{fraction if fraction and fraction != '.' else ''}!"
    return fold_text(text)


def fold_text(text: str) -> str:
    """A text or a part of one, as `text_sort_key` folds it where it is no timestamp."""
    folded = text.casefold()
    if "\0" in folded or "\1" in folded:
        folded = folded.replace("\1", "\1\2").replace("\0", "\1\1")
    return folded


def compare_numbers(number: Number, other: Number) -> int:
    """-1, 0 or 1 as one number is less than, equal to or greater than another, compared by all digits."""
    # The nearest doubles have the order of the numbers, so all digits are compared only where the doubles are equal.
    first_double, second_double = float(number), float(other)
    first_value, second_value = (
        (to_decimal(number), to_decimal(other)) if first_double == second_double else (first_double, second_double)
    )
    return (first_value > second_value) - (first_value < second_value)


def to_decimal(number: Number) -> Decimal:
    """The number as written in JSON: a double has the value of its shortest text, like in `json_text`."""
    return Decimal(repr(number) if isinstance(number, float) else number)


def is_rounded(number: Number) -> bool:
    """Whether the nearest double differs from the number."""
    match number:
        case float():
            return False
        case int() if abs(number) < _SAFE_INTEGER_LIMIT:
            return False
    return to_decimal(float(number)) != number


def number_remainder(number: Number, limit: int) -> str:
    """The distance of a number from its double as text; code point order is the order of the numbers with one double.

    limit: maximum characters; numbers whose remainders agree in these count as equal.
    """
    if not is_rounded(number):
        return NO_REMAINDER
    remainder = _exact_remainder(to_decimal(number), float(number))
    digits, _, exponent = format(remainder.copy_abs(), "e").partition("e")
    text = f"{int(exponent) + _EXPONENT_RANGE:019d}{digits.replace('.', '').rstrip('0')}"
    return (f"0{text.translate(_NINES_COMPLEMENT)}~" if remainder.is_signed() else f"2{text}")[:limit]


def _exact_remainder(number: Decimal, double: float) -> Decimal:
    """The number minus its double, exactly; the number itself where the double is zero or infinite."""
    if not double or math.isinf(double):
        return number
    double_value = to_decimal(double)
    lowest_exponent = min(int(decimal.as_tuple().exponent) for decimal in (number, double_value))
    return Context(prec=max(number.adjusted(), double_value.adjusted()) - lowest_exponent + 2).subtract(
        number, double_value
    )

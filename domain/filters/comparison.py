"""How values of attributes compare in filters and sorts.

Texts compare without regard to case, timestamps by their instant, numbers as numbers, `false` before `true`. Values of
different kinds have an order too, so that a sort always gives the same one: nothing, numbers, then texts and booleans.
Spec: core 1.0-rc4, "Filter Flag", "Sort Flag".
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from typing import Any, Final

Number = int | float | Decimal

#: Below it, each integer has a double of its own.
_WHOLE: Final = 2**53
#: The remainder of a number that is its double.
NO_REMAINDER: Final = "1"
#: Makes every exponent that a Decimal can have a number of 19 digits.
_EXPONENTS: Final = 2 * 10**18
#: Digits of remainders below the double: the larger, the lower.
_TURNED: Final = str.maketrans("0123456789", "9876543210")

_TIMESTAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:(\.\d*?)0*)?Z\Z", re.ASCII)


def text_sort_key(text: str) -> str:
    """A text folded so that code point order of the results is the order of texts.

    A timestamp in UTC sorts by its instant: its `Z` becomes `!`, which is below the dot of a fraction. NUL, which
    PostgreSQL cannot hold, and the character that escapes it keep their order.
    """
    if text[-1:] == "Z" and (timestamp := _TIMESTAMP.match(text)):
        seconds, fraction = timestamp.groups()
        return f"{seconds.lower()}{fraction if fraction and fraction != '.' else ''}!"
    return fold_text(text)


def fold_text(text: str) -> str:
    """A text, or a part of one, as `text_order` has it where it is no timestamp."""
    found = text.casefold()
    if "\0" in found or "\1" in found:
        found = found.replace("\1", "\1\2").replace("\0", "\1\1")
    return found


def compare_numbers(one: Number, other: Number) -> int:
    """-1, 0 or 1 as one number is less than, equal to or more than another, by all of their digits."""
    # The nearest doubles are in the order of the numbers, so these are only looked at where the doubles are the same.
    first, second = float(one), float(other)
    left, right = (to_decimal(one), to_decimal(other)) if first == second else (first, second)
    return (left > right) - (left < right)


def to_decimal(number: Number) -> Decimal:
    """The number that stands in JSON: a double is what its shortest text says, as `jsontext` reads and writes it."""
    return Decimal(repr(number) if isinstance(number, float) else number)


def is_rounded(number: Number) -> bool:
    """Whether the nearest double is not the number itself, so that it says less than the number."""
    match number:
        case float():
            return False
        case int() if abs(number) < _WHOLE:
            return False
    return to_decimal(float(number)) != number


def number_remainder(number: Number, limit: int) -> str:
    """Where a number lies beside its double: code point order is the order of the numbers that share one.

    limit: characters at most; numbers that share as many are level.
    """
    if not is_rounded(number):
        return NO_REMAINDER
    rest = _rest(to_decimal(number), float(number))
    digits, _, exponent = format(rest.copy_abs(), "e").partition("e")
    text = f"{int(exponent) + _EXPONENTS:019d}{digits.replace('.', '').rstrip('0')}"
    return (f"0{text.translate(_TURNED)}~" if rest.is_signed() else f"2{text}")[:limit]


def _rest(number: Decimal, double: float) -> Decimal:
    """The number less its double, or the number itself where that is zero or infinite; every digit counts."""
    if not double or math.isinf(double):
        return number
    near = to_decimal(double)
    lowest = min(int(each.as_tuple().exponent) for each in (number, near))
    return Context(prec=max(number.adjusted(), near.adjusted()) - lowest + 2).subtract(number, near)


def sort_key(value: Any, limit: int) -> tuple[int, float, str]:
    """Sorts values as collections are sorted; what is no scalar counts as missing, the lowest of all.

    limit: characters of a text or of a number's remainder that count; values that share them are level.
    """
    match value:
        case bool():
            return 2, 0.0, "true" if value else "false"
        case str():
            return 2, 0.0, text_sort_key(value)[:limit]
        case int() | float() | Decimal():
            return 1, float(value), number_remainder(value, limit)
    return 0, 0.0, ""

"""Numbers as short text of digits and lower-case letters."""

from __future__ import annotations

from typing import Final

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number: int) -> str:
    """A natural number in base 36; `int(text, 36)` parses it."""
    text = ""
    while number >= 36:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return _DIGITS[number] + text

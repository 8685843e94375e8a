"""Numbers as short text: digits and lower-case letters."""

from __future__ import annotations

from typing import Final

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def base36(number: int) -> str:
    """A natural number; `int(text, 36)` is the way back."""
    text = ""
    while number >= 36:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return _DIGITS[number] + text

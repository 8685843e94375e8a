"""Values in the attribute index: bytes whose order is the sort order of the values.

| value                                    | first byte | then                                                       |
|------------------------------------------|------------|------------------------------------------------------------|
| `{}`, `[]`, or only nulls inside         | no bytes   |                                                            |
| number                                   | 1          | its nearest double in 8 bytes, its `number_remainder`      |
| `false`, `true`                          | 2          | 0 or 1                                                     |
| string                                   | 3          | its `text_sort_key`                                        |

Texts and remainders of `KEY_LIMIT` characters and more are cut there and end in `CUT`, so that values that agree in
them are equal. What a filter says of these, the value itself decides.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from annals.domain.filters.comparison import NO_REMAINDER, Number, number_remainder, text_sort_key

#: The maximum characters of a text and of a number's remainder in the index.
KEY_LIMIT: Final = 128
#: The last byte of a value that was cut. It is in no UTF-8.
CUT: Final = b"\xff"

#: The last byte of the value of a timestamp, and of few other texts.
TIMESTAMP_END: Final = b"!"

EMPTY_VALUE: Final = b""
NUMBER: Final = b"\1"
BOOLEAN: Final = b"\2"
TEXT: Final = b"\3"
FALSE_VALUE: Final = BOOLEAN + b"\0"
TRUE_VALUE: Final = BOOLEAN + b"\1"

_DOUBLE: Final[Callable[[float], bytes]] = Struct(">d").pack
_SIGN_BIT: Final = 0x80
_ALL_BITS: Final = (1 << 64) - 1
_EXACT: Final = NO_REMAINDER.encode()


def scalar_value(value: Any) -> bytes:
    """The value of a JSON value in the index; `EMPTY_VALUE` for one that is no scalar."""
    match value:
        case bool():
            return TRUE_VALUE if value else FALSE_VALUE
        case str():
            return text_value(value)
        case int() | float() | Decimal():
            return number_value(value)
    return EMPTY_VALUE


def text_value(text: str) -> bytes:
    """The value of a string."""
    return _short_text_value(text) if len(text) <= KEY_LIMIT else sorted_text_value(text_sort_key(text))


@lru_cache(maxsize=1 << 14)
def _short_text_value(text: str) -> bytes:
    # Most texts of an import repeat many times: formats, labels, the time, and each value of a default Version.
    return sorted_text_value(text_sort_key(text))


def sorted_text_value(sort_key: str) -> bytes:
    """The value of a string with some `text_sort_key`."""
    return _with_limit(TEXT, sort_key)


def number_value(number: Number) -> bytes:
    """The value of a number."""
    remainder = number_remainder(number, KEY_LIMIT)
    start = NUMBER + _ordered_double(float(number))
    return start + _EXACT if remainder == NO_REMAINDER else _with_limit(start, remainder)


@lru_cache(maxsize=1 << 12)
def _ordered_double(number: float) -> bytes:
    """A double in bytes whose order is that of the doubles."""
    data = _DOUBLE(number + 0.0)  # without the sign of zero
    if data[0] & _SIGN_BIT:
        return (int.from_bytes(data, "big") ^ _ALL_BITS).to_bytes(8, "big")
    return bytes((data[0] | _SIGN_BIT,)) + data[1:]


def _with_limit(start: bytes, key: str) -> bytes:
    return start + key.encode() if len(key) < KEY_LIMIT else start + key[:KEY_LIMIT].encode() + CUT


def is_cut(value: bytes) -> bool:
    """Whether a value stands for others too that begin alike."""
    return value.endswith(CUT)

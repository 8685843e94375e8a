"""Encodes texts as values of headers, and decodes them.

Spec: HTTP binding 1.0-rc4, "HTTP Header Values"; LEG-503 requires the same for the legacy APIs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

#: A quoted string. An unterminated one matches to the end of the text, because otherwise each quote would start a
#: search for its end.
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)(?:(")|\\?\Z)')
_ESCAPED: Final = re.compile(r"\\(.)")


class _PercentEncoder(dict[int, str]):
    """For `str.translate`: keeps allowed ASCII characters and percent-encodes the UTF-8 bytes of all others."""

    def __init__(self, first_plain: int, always_encoded: str = "") -> None:
        super().__init__((code, f"%{code:02X}") for code in range(0x80))
        self.update((code, chr(code)) for code in range(first_plain, 0x7F) if chr(code) not in always_encoded)

    def __missing__(self, code: int) -> str:
        return "".join(f"%{byte:02X}" for byte in chr(code).encode("utf-8"))


_VALUE_ENCODER: Final = _PercentEncoder(0x21, always_encoded='"%')
_TEXT_ENCODER: Final = _PercentEncoder(0x20)


class InvalidHeaderValue(ValueError):
    """A header value that cannot be decoded; the message says why."""


@lru_cache(maxsize=4096)  # a value with spaces is often a fixed sentence of the registry
def encode(value: str) -> str:
    """A value as a header carries it: printable ASCII without space, quote and percent sign."""
    return value.translate(_VALUE_ENCODER)


def encode_text(value: str) -> str:
    """The value of a standard HTTP header, such as a URL: only characters illegal in headers are encoded."""
    return value.translate(_TEXT_ENCODER)


def decode(value: str) -> str:
    """The inverse of `encode`; it also accepts quoted strings and unnecessary encoding. Raises: InvalidHeaderValue."""
    unquoted = _QUOTED.sub(lambda found: _ESCAPED.sub(r"\1", found[1]) if found[2] else found[0], value)
    try:
        # Header bytes above ASCII arrive as latin-1; they too have to be UTF-8.
        return unquote_to_bytes(unquoted.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidHeaderValue("it does not decode to UTF-8") from None

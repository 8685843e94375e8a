"""Texts as values of headers, and back.

Spec: HTTP binding 1.0-rc4, "HTTP Header Values"; LEG-503 has the same of the older APIs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_to_bytes

#: A quoted string. One that does not end is taken whole, because looking for its end from each quote on takes long.
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)(?:(")|\\?\Z)')
_ESCAPED: Final = re.compile(r"\\(.)")


class _PercentEncoder(dict[int, str]):
    """For `str.translate`: a character as it is where it is ASCII and not refused, else its UTF-8 percent-encoded."""

    def __init__(self, low: int, refused: str = "") -> None:
        super().__init__((code, f"%{code:02X}") for code in range(0x80))
        self.update((code, chr(code)) for code in range(low, 0x7F) if chr(code) not in refused)

    def __missing__(self, code: int) -> str:
        return "".join(f"%{byte:02X}" for byte in chr(code).encode("utf-8"))


_VALUE: Final = _PercentEncoder(0x21, refused='"%')
_TEXT: Final = _PercentEncoder(0x20)


class InvalidHeaderValue(ValueError):
    """A header value that cannot be decoded; the message says why."""


@lru_cache(maxsize=4096)  # what has spaces is often a sentence of the registry's own
def encode(value: str) -> str:
    """A value as a header carries it: printable ASCII without space, quote and percent sign."""
    return value.translate(_VALUE)


def encode_text(value: str) -> str:
    """The value of a header of HTTP's own, such as a media type or a URL: only what no header may hold is encoded."""
    return value.translate(_TEXT)


def decode(value: str) -> str:
    """The inverse of `encode`; quoted strings and needless encoding are understood too. Raises: InvalidHeaderValue."""
    unquoted = _QUOTED.sub(lambda found: _ESCAPED.sub(r"\1", found[1]) if found[2] else found[0], value)
    try:
        # Header bytes above ASCII come in as latin-1; they too have to be UTF-8.
        return unquote_to_bytes(unquoted.encode("latin-1")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidHeaderValue("it does not decode to UTF-8") from None

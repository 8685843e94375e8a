"""Master keys as a setting gives them. This module imports no database, as the settings import it."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from typing import Final

#: Bytes of a key.
KEY_BYTES: Final = 32


def parse_keys(text: str) -> tuple[bytes, ...]:
    """Master keys from a setting: base64 of 32 bytes each, separated by commas, newest first. Raises: ValueError."""
    keys = tuple(_parse_key(part.strip()) for part in text.replace("\n", ",").split(",") if part.strip())
    if not keys:
        raise ValueError("the list has no key")
    return keys


def _parse_key(text: str) -> bytes:
    try:
        key = b64decode(text, validate=True)
    except Error:
        raise ValueError("a key has to be base64") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has to have {KEY_BYTES} bytes")
    return key

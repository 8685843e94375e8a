"""The mapping between legacy ids, which are arbitrary text in percent-encoding, and ids of the registry.

A legacy id is the decoded text: `a%2Db` is `a-b`, and an encoded slash is an ordinary character. An id that the
registry does not allow is stored under an escaped id that begins with `_~`. A legacy id that already looks like an
escaped one is escaped as well. So the mapping is one to one in both directions, for ids of any client.
Spec: RFC 3986, section 3.3, `segment-nz-nc`; CloudEvents 1.0, "Type System". Rules LEG-401, LEG-403, LEG-404, LEG-1109.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from annals.domain.values import xid as xids

#: The prefix of escaped ids.
_ESCAPE_PREFIX: Final = "_~"
#: Bytes that an escaped id contains unchanged; all others are written as `~XX`.
_PLAIN_BYTES: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_@")
_ESCAPED_BYTES: Final = re.compile(r"(?:[A-Za-z0-9.\-_@]|~[0-9A-F]{2})+\Z")
#: The maximum length of an id in the registry, in characters.
_MAX_LENGTH: Final = 128

_SUBDELIMS: Final = "!$&'()*+,;="
_SEGMENT: Final = re.compile(rf"(?:[A-Za-z0-9\-._~@{_SUBDELIMS}]|%[0-9A-Fa-f]{{2}})+\Z")
#: Code points that the String type of CloudEvents forbids: control characters, surrogates and noncharacters.
NONCHARACTERS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def to_registry_id(id: str) -> str:
    """The id under which the registry stores an entity with this legacy id.

    Different ids give different results. Raises: ValueError where the text is no id, and where the result is too long.
    """
    _check_id(id)
    if xids.ID.match(id) and _unescape_id(id) is None:
        return id
    escaped = _ESCAPE_PREFIX + "".join(chr(byte) if byte in _PLAIN_BYTES else f"~{byte:02X}" for byte in id.encode())
    if len(escaped) > _MAX_LENGTH:
        raise ValueError(f"its escaped form has {len(escaped)} characters, and at most {_MAX_LENGTH} are allowed")
    return escaped


def to_legacy_id(id: str) -> str:
    """The legacy id of an entity with this registry id: `to_registry_id(to_legacy_id(id)) == id`."""
    legacy_id = _unescape_id(id)
    return id if legacy_id is None else legacy_id


def encode_segment(id: str) -> str:
    """An id as a path segment without a colon; characters that are not allowed there are percent-encoded UTF-8."""
    return quote(id, safe=_SUBDELIMS + "@")


def decode_segment(segment: str) -> str:
    """The id that a path segment encodes, given as it was sent. Raises: ValueError where it encodes no id."""
    if not segment:
        raise ValueError("it is empty")
    if not _SEGMENT.match(segment):
        raise ValueError("it has a character that has to be percent-encoded, or a % without two hexadecimal digits")
    try:
        return _check_id(unquote_to_bytes(segment).decode())
    except UnicodeDecodeError:
        raise ValueError("its percent-encoded bytes are not UTF-8") from None


def _unescape_id(id: str) -> str | None:
    """The legacy id that was escaped into this registry id; None where `to_registry_id` does not make this id."""
    if not id.startswith(_ESCAPE_PREFIX) or not _ESCAPED_BYTES.match(id, len(_ESCAPE_PREFIX)):
        return None
    try:
        legacy_id = unquote_to_bytes(id[len(_ESCAPE_PREFIX) :].replace("~", "%")).decode()
        return legacy_id if to_registry_id(legacy_id) == id else None
    except ValueError:
        return None


def _check_id(id: str) -> str:
    if not id:
        raise ValueError("it is empty")
    if id in (".", ".."):
        raise ValueError("it has another meaning in a path")
    if match := NONCHARACTERS.search(id):
        raise ValueError(f"it has the code point U+{ord(match[0]):04X}, which is not a character of a text")
    return id

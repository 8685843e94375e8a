"""Ids of the older APIs, which are any text in percent-encoding, and the ids under which the registry keeps them.

An id is the text that its percent-encoding stands for, so `a%2Db` is `a-b`, and an encoded slash is a character like
any other. One that the registry cannot have as it is gets a name that begins with `_~`, and so does one that is such a
name already. So each id of either side has exactly one on the other, whoever chose it.
Spec: RFC 3986, section 3.3, `segment-nz-nc`; CloudEvents 1.0, "Type System". Rules LEG-401, LEG-403, LEG-404, LEG-1109.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from domain.values import xid as xids

#: What the registry's name of an id begins with that it cannot have as it is.
_MADE: Final = "_~"
#: Characters of an id that such a name has as they are.
_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_@")
_BYTES: Final = re.compile(r"(?:[A-Za-z0-9.\-_@]|~[0-9A-F]{2})+\Z")
#: The most characters that an id of the registry has.
_LONGEST: Final = 128

_SUBDELIMS: Final = "!$&'()*+,;="
_SEGMENT: Final = re.compile(rf"(?:[A-Za-z0-9\-._~@{_SUBDELIMS}]|%[0-9A-Fa-f]{{2}})+\Z")
#: What no String of CloudEvents has: control characters and code points that are no characters.
NONCHARACTERS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def to_registry_id(id: str) -> str:
    """The id under which the registry keeps what an older API calls by this one.

    Different ids have different ones. Raises: ValueError for what is no id, and for one that gets too long.
    """
    _checked(id)
    if xids.ID.match(id) and _meant(id) is None:
        return id
    made = _MADE + "".join(chr(byte) if byte in _PLAIN else f"~{byte:02X}" for byte in id.encode())
    if len(made) > _LONGEST:
        raise ValueError(f"the registry would have to keep it under {len(made)} characters, and {_LONGEST} is the most")
    return made


def to_legacy_id(id: str) -> str:
    """The id by which an older API calls what the registry keeps under this one: `to_xid(from_xid(id)) == id`."""
    meant = _meant(id)
    return id if meant is None else meant


def encode_segment(id: str) -> str:
    """An id as a segment of a path, without a colon: what is not allowed there is percent-encoded in UTF-8."""
    return quote(id, safe=_SUBDELIMS + "@")


def decode_segment(segment: str) -> str:
    """The id that a segment of a path stands for, as it is sent. Raises: ValueError for what stands for none."""
    if not segment:
        raise ValueError("it is empty")
    if not _SEGMENT.match(segment):
        raise ValueError("it has a character that has to be percent-encoded, or a % without two hexadecimal digits")
    try:
        return _checked(unquote_to_bytes(segment).decode())
    except UnicodeDecodeError:
        raise ValueError("what it encodes is not UTF-8") from None


def _meant(id: str) -> str | None:
    """The id that this one of the registry was made for; None for one that `to_xid` would not make."""
    if not id.startswith(_MADE) or not _BYTES.match(id, len(_MADE)):
        return None
    try:
        meant = unquote_to_bytes(id[len(_MADE) :].replace("~", "%")).decode()
        return meant if to_registry_id(meant) == id else None
    except ValueError:
        return None


def _checked(id: str) -> str:
    if not id:
        raise ValueError("it is empty")
    if id in (".", ".."):
        raise ValueError("a path means something else by it")
    if found := NONCHARACTERS.search(id):
        raise ValueError(f"it has the code point U+{ord(found[0]):04X}, which is no character of a text")
    return id

"""Splits a stored JSON object into its top-level members, with each value as text.

Responses are cut and joined from stored text. No value is parsed and serialized again, so no digit is lost, and an
entity costs microseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from annals.domain.values.json_text import Json, dumps, loads

#: Members of an object by name, in order; values are JSON text.
MemberTexts = dict[str, str]

#: A member with a simple value. The value group is empty for a string with escapes, an object or an array.
_MEMBER: Final = re.compile(r'[{,]"([^"\\]+)":("[^"\\]*"|[-0-9tfn][^,}]*|)')
#: Finds the end of a value. Numbers are skipped, not computed.
_VALUE_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str)


def split_members(text: str) -> MemberTexts:
    """The members of an object in compact JSON whose names have no escapes. O(length)."""
    members: MemberTexts = {}
    index = 0
    while member := _MEMBER.match(text, index):
        name, value = member.groups()
        index = member.end()
        if not value:
            start, index = index, _VALUE_DECODER.raw_decode(text, index)[1]
            value = text[start:index]
        members[name] = value
    return members


def join_members(members: Mapping[str, str]) -> str:
    """The members joined as they appear between the braces of an object."""
    return ",".join([f'"{name}":{value}' for name, value in members.items()])


def json_string(text: str) -> str:
    """A string as JSON text."""
    return dumps(text).decode()


def parse_string(value: str | None) -> str | None:
    """The string value of a JSON text; None if the text is absent or not a string."""
    if value is None or value[0] != '"':
        return None
    if "\\" in value:
        decoded: Json = loads(value)
        return str(decoded)
    return value[1:-1]

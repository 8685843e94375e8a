"""JSON with a line for each member, without a change of any number or string."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from annals.domain.values.json_text import Json, dumps, dumps_indented

#: Values with more lines stay in one, because each line of a deep value is as long as the value is deep.
MAX_LINES: Final = 20_000
_INDENT: Final = "  "
#: Levels that are indented; deeper ones would make a short text long.
_MAX_DEPTH: Final = 24


def indent(value: Json) -> str:
    """A value as JSON, in lines of one member each if they are not too many; its numbers are those of the API."""
    return dumps_indented(value) if line_count(value) <= MAX_LINES else dumps(value).decode()


def line_count(value: Json) -> int:
    """The number of lines of a value, with one member each. Cost: O(members)."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + bool(members) + sum(map(line_count, members))


def break_json(text: str) -> str:
    """A valid JSON text with line breaks between members."""
    return "".join(_pieces(text))


def is_json(text: str) -> bool:
    """Whether a text is a JSON object or array."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):  # the latter for a text that is nested too deeply
        return False
    return text.lstrip()[:1] in ("{", "[")


def _pieces(text: str) -> Iterator[str]:
    """The pieces of valid JSON with white space between members; numbers and strings stay as they are."""
    depth, is_in_string, is_escaped = 0, False, False
    previous = ""
    for character in text:
        if is_in_string:
            yield character
            is_in_string = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
            continue
        if character in " \t\r\n":
            continue
        is_end = character in "}]"
        depth -= is_end
        if (is_end and previous not in "{[") or (not is_end and previous and previous in "{[,"):
            yield "\n" + _INDENT * min(depth, _MAX_DEPTH)
        depth += character in "{["
        yield character + (" " if character == ":" else "")
        is_in_string = character == '"'
        previous = character

"""Where in a document something is, by line and column (UI-81)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecoder
from typing import Any, Final

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = JSONDecoder(strict=False)
#: The end of a message about a syntax error, which names the place itself.
_NAMED: Final = re.compile(r" at line ([0-9]+) column ([0-9]+)\Z")


def split_message(text: str, location: Mapping[str, Any], document: str) -> tuple[str, str]:
    """A message that the API has for a place in a document, without its place, and that place as text.

    A syntax error names its column; the fragment of its location is the whole line.
    """
    if named := _NAMED.search(text):
        return text[: named.start()], f"line {named[1]}, column {named[2]}"
    return text, place_text(location, document)


def place_text(location: Mapping[str, Any], document: str = "") -> str:
    """A place that the API names, with its line and column in a document; without what is not known.

    location: with `line`, or `pointer` in JSON, and `fragment`. document: empty if it is not known.
    """
    line, column = _line_and_column(location, document)
    parts = [f"line {line}"] if line else []
    parts += [f"column {column}"] if column else []
    parts += [f"at {location['pointer']}"] if location.get("pointer") else []
    return ", ".join(parts)


def _line_and_column(location: Mapping[str, Any], document: str) -> tuple[int | None, int | None]:
    line = location.get("line")
    if line is not None:
        return line, _column_in_line(document, line, str(location.get("fragment", "")))
    offset = _offset(document, location["pointer"]) if document and "pointer" in location else None
    if offset is None:
        return None, None
    return document.count("\n", 0, offset) + 1, offset - document.rfind("\n", 0, offset)


def _column_in_line(document: str, line: int, fragment: str) -> int | None:
    """Where a fragment begins in its line; without one, where the text of the line does."""
    lines = document.split("\n")
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    start = text.find(fragment.split("\n")[0].strip())
    if start < 0 or not fragment.strip():
        start = len(text) - len(text.lstrip())
    return start + 1 if text.strip() else None


def _offset(document: str, pointer: str) -> int | None:
    """Where the value at a JSON Pointer begins; None if the document is no JSON, or has no such value."""
    try:
        offset = _skip_space(document, 0)
        for token in pointer.split("/")[1:]:
            offset = _member_offset(document, offset, token.replace("~1", "/").replace("~0", "~"))
    except (ValueError, IndexError, LookupError, RecursionError):
        return None
    return offset


def _member_offset(document: str, start: int, name: str) -> int:
    """Where a member of the object, or an item of the array, at `start` begins. Raises: ValueError, LookupError."""
    is_object = document[start] == "{"
    if not is_object and document[start] != "[":
        raise LookupError(name)
    offset, index = _skip_space(document, start + 1), 0
    while document[offset] not in "]}":
        key = str(index)
        if is_object:
            key, offset = _DECODER.raw_decode(document, offset)
            offset = _skip_space(document, _skip_space(document, offset) + 1)  # the colon
        if key == name:
            return offset
        _, offset = _DECODER.raw_decode(document, offset)
        offset = _skip_space(document, offset)
        if document[offset] == ",":
            offset = _skip_space(document, offset + 1)
        index += 1
    raise LookupError(name)


def _skip_space(document: str, offset: int) -> int:
    found = _SPACE.match(document, offset)
    return found.end() if found else offset

"""Locations in a document, and the values there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from domain.formats.contract import MAX_FRAGMENT, DocumentLocation
from domain.values.json_pointer import join_pointer


def location_at(document: Any, path: Sequence[Any]) -> DocumentLocation:
    """The location at a path of names and indexes; a name may look like a number."""
    return DocumentLocation(pointer=join_pointer("", *path), fragment=json_fragment(_at(document, path)))


def path_in_default(document: Any, schema: Any, path: Sequence[Any], value: Any) -> list[Any]:
    """The path to a value inside of some default; empty where no default contains it.

    schema: the schema that the value was checked against. path: from the default to the value.
    """
    waiting: list[tuple[list[Any], Any]] = [([], document)]
    while waiting:
        way, found = waiting.pop()
        if isinstance(found, dict):
            if "default" in found and (_at(found["default"], path) == value if path else found == schema):
                return [*way, "default", *path]
            waiting.extend(([*way, name], part) for name, part in found.items())
        elif isinstance(found, list):
            waiting.extend(([*way, at], part) for at, part in enumerate(found))
    return []


def reference_pointer(found: Any, fragment: str) -> str | None:
    """The pointer to a reference whose URI ends with a fragment; None where there is none."""
    waiting = [("", found)]
    while waiting:
        pointer, value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str) and value["$ref"].endswith(fragment):
                return f"{pointer}/$ref"
            waiting.extend((join_pointer(pointer, name), part) for name, part in value.items())
        elif isinstance(value, list):
            waiting.extend((f"{pointer}/{at}", part) for at, part in enumerate(value))
    return None


def json_fragment(value: Any) -> str:
    """A value as JSON, at most MAX_FRAGMENT characters."""
    if isinstance(value, dict | list) and len(value) > MAX_FRAGMENT:
        value = dict(list(value.items())[:MAX_FRAGMENT]) if isinstance(value, dict) else value[:MAX_FRAGMENT]
    return json.dumps(value, ensure_ascii=False, default=str)[:MAX_FRAGMENT]


def _at(value: Any, path: Sequence[Any]) -> Any:
    """The value at a path; None where there is none."""
    for part in path:
        try:
            value = value[part] if isinstance(value, list) else value[str(part)]
        except (LookupError, TypeError):
            return None
    return value

"""Locations in a document, and the values there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.values.json_pointer import join_pointer, split_pointer


def location_at(document: Any, path: Sequence[Any]) -> DocumentLocation:
    """The location at a path of names and indexes; a name may look like a number."""
    return DocumentLocation(pointer=join_pointer("", *path), fragment=json_fragment(_value_at(document, path)))


def with_fragment(location: DocumentLocation | None, document: Any) -> DocumentLocation | None:
    """A location with the text there, unless it has one. What is not in the document is located where it would be."""
    if location is None or location.pointer is None or location.fragment is not None:
        return location
    value, path = document, list[str]()
    for step in split_pointer(location.pointer):
        try:
            value = value[int(step) if isinstance(value, list) else step]
        except (LookupError, TypeError, ValueError):
            break
        path.append(step)
    return DocumentLocation(pointer=join_pointer("", *path), fragment=json_fragment(value))


def path_in_default(document: Any, schema: Any, path: Sequence[Any], value: Any) -> list[Any]:
    """The path to a value inside of some default; empty where no default contains it.

    schema: the schema that the value was checked against. path: from the default to the value.
    """
    pending: list[tuple[list[Any], Any]] = [([], document)]
    while pending:
        current_path, current = pending.pop()
        if isinstance(current, dict):
            if "default" in current and (_value_at(current["default"], path) == value if path else current == schema):
                return [*current_path, "default", *path]
            pending.extend(([*current_path, name], part) for name, part in current.items())
        elif isinstance(current, list):
            pending.extend(([*current_path, index], part) for index, part in enumerate(current))
    return []


def reference_pointer(document: Any, fragment: str) -> str | None:
    """The pointer to a reference whose URI ends with a fragment; None where there is none."""
    pending = [("", document)]
    while pending:
        pointer, value = pending.pop()
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str) and value["$ref"].endswith(fragment):
                return f"{pointer}/$ref"
            pending.extend((join_pointer(pointer, name), part) for name, part in value.items())
        elif isinstance(value, list):
            pending.extend((f"{pointer}/{index}", part) for index, part in enumerate(value))
    return None


def _value_at(value: Any, path: Sequence[Any]) -> Any:
    """The value at a path; None where there is none."""
    for step in path:
        try:
            value = value[step] if isinstance(value, list) else value[str(step)]
        except (LookupError, TypeError):
            return None
    return value

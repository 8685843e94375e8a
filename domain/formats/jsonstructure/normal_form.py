"""A normal form of JSON Structure documents: equal bytes for documents that differ in spelling only."""

from __future__ import annotations

from typing import Any

from annals.domain.formats.jsonschema.normal_form import normalize_data
from annals.domain.values.json_text import dumps


def normal_form(document: Any) -> bytes:
    """UTF-8 JSON without white space, with sorted members and the shortest spelling of numbers.

    Lists keep their order, because the order of types and tuples is significant; but `required` is a set and is sorted.
    """
    return dumps(normalize_data(_sort_required(document)))


def _sort_required(value: Any) -> Any:
    if isinstance(value, list):
        return [_sort_required(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _sort_names(item) if name == "required" else _sort_required(item) for name, item in value.items()}


def _sort_names(value: Any) -> Any:
    """The sorted names of `required`; any other value is a schema of a property with this name."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return _sort_required(value)
    return sorted(set(value))

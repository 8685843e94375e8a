"""A normal form of JSON Structure documents: the same bytes for documents that say the same in other spellings."""

from __future__ import annotations

from typing import Any

from domain.formats.jsonschema.normal_form import normalize_data
from domain.values.json_text import dumps


def normal_form(document: Any) -> bytes:
    """UTF-8 JSON without white space, members in order, numbers in their shortest spelling.

    Lists stay in their order, as types are tried in theirs and tuples are read in theirs; but `required` is a set.
    """
    return dumps(normalize_data(_sorted(document)))


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _required(item) if name == "required" else _sorted(item) for name, item in value.items()}


def _required(value: Any) -> Any:
    """A property may have this name as well; then it is a schema."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return _sorted(value)
    return sorted(set(value))

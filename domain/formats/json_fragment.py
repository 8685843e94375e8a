"""The JSON text of values at locations in a document."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from annals.domain.formats.contract import MAX_FRAGMENT


def json_fragment(value: Any) -> str:
    """The beginning of a value's JSON text. The cost is that of the returned text, even for a large value."""
    text = ""
    try:
        for part in _json_parts(value):
            text += part[: MAX_FRAGMENT + 1]
            if len(text) > MAX_FRAGMENT:
                return text[: MAX_FRAGMENT - 1] + "…"
    except RecursionError:
        return text[:MAX_FRAGMENT]
    return text


def _json_parts(value: Any) -> Iterable[str]:
    return json.JSONEncoder(ensure_ascii=False, default=_to_json).iterencode(value)


def _to_json(value: object) -> object:
    """A value that parsers return and JSON does not have, such as the date of a YAML document."""
    return float(value) if isinstance(value, Decimal) else str(value)

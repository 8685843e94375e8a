"""The attributes of an entity as rows of a region (UI-73)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.api.ui.html_size import MAX_PART, count_within, html_size
from annals.api.ui.registry_model import Attributes
from annals.domain.values.json_text import unquoted

#: What all attributes of a page take of it, and the HTML of one without its value, in bytes.
_MAX_ROWS: Final = MAX_PART // 2
_ROW: Final = 100
#: What a value takes at most, see the macro `value`.
_MAX_VALUE: Final = 10_000


class ShownAttribute(NamedTuple):
    """One attribute. type: of the model; `xid` for a reference within the registry. is_readonly: set by the server."""

    name: str
    value: Any
    type: str
    description: str
    is_readonly: bool


def attribute_rows(
    entity: Mapping[str, Any], definitions: Attributes, hidden: Collection[str] = ()
) -> list[ShownAttribute]:
    """The rows in the order of the API. hidden: attributes that the page shows elsewhere."""
    return [
        ShownAttribute(
            name,
            value,
            definition.get("type", ""),
            definition.get("description", ""),
            bool(definition.get("readonly")),
        )
        for name, value in entity.items()
        if name not in hidden
        for definition in (definitions.get(name, {}),)
    ]


def rows_region(rows: Sequence[ShownAttribute]) -> Mapping[str, Any]:
    """What a region shows: the rows for which a page has room. left_out: the number of others."""
    count = count_within(map(_row_size, rows), _MAX_ROWS)
    return {"rows": rows[:count], "left_out": len(rows) - count}


def _row_size(row: ShownAttribute) -> int:
    text = unquoted(row.value)[:_MAX_VALUE]
    return _ROW + html_size(row.name + row.description) + min(html_size(text), _MAX_VALUE)

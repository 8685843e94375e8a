"""The attributes of an entity as rows of a region (UI-73)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from annals.api.ui.registry_model import Attributes


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

"""Finds the values that equal a default of the model, in complete attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from annals.domain.model.active_definitions import active_definitions
from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.model.validation.values import equality_key
from annals.domain.registry.explicit_values import DefaultMarks


def assumed_defaults(definitions: Definitions, values: Mapping[str, Any]) -> DefaultMarks:
    """The values that equal their defaults, as `DefaultMarks`; an array is one value."""
    definitions_in_force = active_definitions(definitions, values)
    wildcard = definitions_in_force.pop("*", None)
    marks: DefaultMarks = {}
    for name, value in values.items():
        if (definition := definitions_in_force.get(name, wildcard)) is not None and (
            mark := _default_mark(definition, value)
        ):
            marks[name] = mark
    return marks


def has_defaults(definitions: Definitions) -> bool:
    """Whether any definition has a default, at any depth."""
    return any("default" in row or any(map(has_defaults, _nested_definitions(row))) for row in definitions.values())


def _default_mark(definition: Definition, value: Any) -> Any:
    default, type_name = definition.get("default"), definition["type"]
    if default is not None and equality_key(type_name, value) == equality_key(type_name, default):
        return True
    if not isinstance(value, dict):
        return None
    if definition["type"] == "map":
        return {key: mark for key, member in value.items() if (mark := _default_mark(definition["item"], member))}
    return assumed_defaults(definition.get("attributes", {}), value)


def _nested_definitions(row: Definition) -> Iterator[Definitions]:
    yield row.get("attributes", {})
    yield {"item": row["item"]} if row.get("item") else {}
    yield from (branch.get("siblingattributes", {}) for branch in row.get("ifvalues", {}).values())

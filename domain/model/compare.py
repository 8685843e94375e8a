"""The differences between two models, for writes that replace one model with the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

from annals.domain.model.constraints import parse_constraint_key
from annals.domain.model.types import Model
from annals.domain.values import xid as xids

#: Aspects that are descriptions only.
_DESCRIPTIVE_ASPECTS: Final = frozenset(
    {"description", "documentation", "icon", "labels", "modelversion", "modelcompatiblewith"}
)
#: The attributes of a Resource type, by level.
_LEVELS: Final = ("attributes", "resourceattributes", "metaattributes")


def changed_types(old: Model, new: Model) -> set[str]:
    """Entity types (`/`, `dirs`, `dirs.files`) whose definition differs, including added and removed ones.

    A Resource type includes its Versions and metas. It does not matter whether a definition comes from an include
    (MOD-75). An import does matter, because it decides which xrefs are legal.
    """
    old_definitions, new_definitions = dict(_comparable_types(old)), dict(_comparable_types(new))
    return {
        type
        for type in old_definitions.keys() | new_definitions.keys()
        if old_definitions.get(type) != new_definitions.get(type)
    }


def related_types(model: Model, types: Collection[str]) -> set[str]:
    """The Resource types that share their definition with one of the given types: an xref may connect them."""
    origins = {
        f"{group.plural}.{plural}": resource.origin
        for group in model.groups.values()
        for plural, resource in group.resources.items()
    }
    shared_origins = {origins[type] for type in types if type in origins}
    return {type for type, origin in origins.items() if origin in shared_origins}


def lost_types(old: Model, new: Model) -> set[str]:
    """The types of a model that another one lacks, to which values may still refer."""
    return {type for type, _ in _comparable_types(old)} - {type for type, _ in _comparable_types(new)}


def referring_types(model: Model) -> set[str]:
    """The entity types with attributes of one's own that name types or entities: their values depend on all types."""
    found = {xids.REGISTRY} if _have_reference(model.full["attributes"]) else set()
    for plural, group in model.full["groups"].items():
        if _have_reference(group["attributes"]):
            found.add(plural)
        for name, row in group["resources"].items():
            if any(_have_reference(row[level]) for level in _LEVELS):
                found.add(f"{plural}.{name}")
    return found


def _have_reference(rows: dict[str, Any]) -> bool:
    return any(_is_reference(row) for name, row in rows.items() if name != "xid")


def _is_reference(row: dict[str, Any]) -> bool:
    return (
        row.get("type") in ("xid", "xidtype")
        or "target" in row
        or _have_reference(row.get("attributes", {}))
        or ("item" in row and _is_reference(row["item"]))
        or any(_have_reference(branch["siblingattributes"]) for branch in row.get("ifvalues", {}).values())
    )


def _comparable_types(model: Model) -> Iterator[tuple[str, Any]]:
    yield xids.REGISTRY, _comparable_attributes(model.full["attributes"])
    for plural, group in model.full["groups"].items():
        constraints = group.get("constraints", {})
        yield plural, (group["singular"], _comparable_attributes(group["attributes"]), constraints)
        for name, row in group["resources"].items():
            bounds = {
                key: constraint for key, constraint in constraints.items() if parse_constraint_key(key)[0] == name
            }
            yield f"{plural}.{name}", (model.groups[plural].resources[name].origin, _comparable_resource(row), bounds)


def _comparable_resource(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _comparable_attributes(value) if name in _LEVELS else value
        for name, value in row.items()
        if name not in _DESCRIPTIVE_ASPECTS
    }


def _comparable_attributes(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: _comparable_definition(row) for name, row in rows.items()}


def _comparable_definition(row: dict[str, Any]) -> dict[str, Any]:
    """An attribute's definition without its descriptions, at every depth."""
    retained = {name: value for name, value in row.items() if name != "description"}
    if "attributes" in row:
        retained["attributes"] = _comparable_attributes(row["attributes"])
    if "item" in row:
        retained["item"] = _comparable_definition(row["item"])
    if "ifvalues" in row:
        retained["ifvalues"] = {
            key: _comparable_attributes(branch["siblingattributes"]) for key, branch in row["ifvalues"].items()
        }
    return retained

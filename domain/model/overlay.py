"""Spec-defined attributes, overlaid with those of a modelsource: they can be tightened, never loosened.

Spec: Registry Model 1.0-rc4, "Creating or Updating the Registry Model".
"""

from __future__ import annotations

from typing import Any

from domain.model.model_errors import ModelPath, model_error, object_members
from domain.model.spec_attributes import Definition, Definitions, SpecAttributes


def overlay_level(specified: SpecAttributes, given: Any, place: ModelPath) -> Definitions:
    """The attributes of one level: spec-defined ones, extensions, then those that are serialized last.

    given: the attributes that a modelsource has for the level.
    Raises: ModelError.
    """
    joined = overlay_definitions(specified.attributes, given, place)
    clash = next((name for name in joined if name in specified.reserved), None)
    if clash:
        raise model_error((*place, clash), "the name is taken, so no extension can have it")
    last = {name: joined[name] for name in specified.last if name in joined}
    return {name: row for name, row in joined.items() if name not in last} | last


def overlay_definitions(specified: Definitions, given: Any, place: ModelPath) -> Definitions:
    """Spec-defined attributes in their order, overlaid, then the extensions in theirs. Raises: ModelError."""
    rows = object_members(given, place)
    spec = {
        name: _overlaid(row, rows[name], (*place, name)) if name in rows else row
        for name, row in specified.items()
        if name != "*"
    }
    extensions = {name: row for name, row in rows.items() if name not in spec and name != "*"}
    star = {"*": rows.get("*") or specified.get("*")}
    return spec | extensions | object_members(star, place)


def _overlaid(specified: Definition, given: Any, place: ModelPath) -> Definition:
    # The result of `object_members` is not used here: a default set to null, and so removed, must stay visible.
    object_members(given, place)
    row: Definition = {**specified, **given}
    if row["type"] != specified["type"]:
        raise model_error(place, f"its type is {specified['type']} and cannot change")
    for flag in ("required", "readonly", "immutable"):
        if specified.get(flag) and row[flag] is not True:
            raise model_error((*place, flag), "it is true and cannot become false")
    for aspect in ("default", "enum"):
        if aspect in specified and row[aspect] in (None, []):
            raise model_error((*place, aspect), "it can be changed but not removed")
    if specified.get("attributes"):
        row["attributes"] = overlay_definitions(
            specified["attributes"], given.get("attributes") or {}, (*place, "attributes")
        )
    if specified.get("item") and given.get("item"):
        row["item"] = _overlaid(specified["item"], given["item"], (*place, "item"))
    return row

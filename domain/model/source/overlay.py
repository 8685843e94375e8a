"""Spec-defined attributes, overlaid with those of a modelsource: they can be tightened, never loosened.

Spec: Registry Model 1.0-rc4, "Creating or Updating the Registry Model".
"""

from __future__ import annotations

from typing import Any

from annals.domain.model.model_errors import ModelPath, model_error, object_members
from annals.domain.model.spec_attributes import Definition, Definitions, SpecAttributes


def overlay_level(specified: SpecAttributes, definitions: Any, model_path: ModelPath) -> Definitions:
    """The attributes of one level: spec-defined ones, extensions, then those that are serialized last.

    definitions: the attributes that a modelsource has for the level.
    Raises: ModelError.
    """
    overlaid = overlay_definitions(specified.attributes, definitions, model_path)
    reserved_name = next((name for name in overlaid if name in specified.reserved_names), None)
    if reserved_name:
        raise model_error((*model_path, reserved_name), "the name is taken, so no extension can have it")
    last_attributes = {name: overlaid[name] for name in specified.trailing_names if name in overlaid}
    return {name: row for name, row in overlaid.items() if name not in last_attributes} | last_attributes


def overlay_definitions(specified: Definitions, definitions: Any, model_path: ModelPath) -> Definitions:
    """Spec-defined attributes in their order, overlaid, then the extensions in theirs. Raises: ModelError."""
    rows = object_members(definitions, model_path)
    spec = {
        name: _overlay_definition(row, rows[name], (*model_path, name)) if name in rows else row
        for name, row in specified.items()
        if name != "*"
    }
    extensions = {name: row for name, row in rows.items() if name not in spec and name != "*"}
    wildcard = {"*": rows.get("*") or specified.get("*")}
    return spec | extensions | object_members(wildcard, model_path)


def _overlay_definition(specified: Definition, definition: Any, model_path: ModelPath) -> Definition:
    # The result of `object_members` is not used here: a default set to null, and so removed, must stay visible.
    object_members(definition, model_path)
    row: Definition = {**specified, **definition}
    if row["type"] != specified["type"]:
        raise model_error(model_path, f"its type is {specified['type']} and cannot change")
    for flag in ("required", "readonly", "immutable"):
        if specified.get(flag) and row[flag] is not True:
            raise model_error((*model_path, flag), "it is true and cannot become false")
    for aspect in ("default", "enum"):
        if aspect in specified and row[aspect] in (None, []):
            raise model_error((*model_path, aspect), "it can be changed but not removed")
    if specified.get("attributes"):
        row["attributes"] = overlay_definitions(
            specified["attributes"], definition.get("attributes") or {}, (*model_path, "attributes")
        )
    if specified.get("item") and definition.get("item"):
        row["item"] = _overlay_definition(specified["item"], definition["item"], (*model_path, "item"))
    return row

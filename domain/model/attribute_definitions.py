"""The language of attribute definitions: validates them, and converts them into the form of a full model.

Spec: Registry Model 1.0-rc4, "Registry Model".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, Final

from domain.errors.problems import ModelRequiredTrue, ModelScalarDefault
from domain.model import targets, values
from domain.model.compiled_attributes import CHARSETS
from domain.model.model_errors import ModelPath, checked_aspects, model_error, object_members
from domain.model.spec_attributes import Definition, Definitions
from domain.model.value_errors import InvalidValue
from domain.values import dot_path

#: Aspects of an attribute with the kinds of their values, in the order in which a full model writes them.
ASPECTS: Final = {
    "name": "string",
    "type": "string",
    "target": "string",
    "namecharset": "string",
    "description": "string",
    "enum": "array",
    "strict": "boolean",
    "matchversions": "boolean",
    "readonly": "boolean",
    "immutable": "boolean",
    "required": "boolean",
    "default": "any",
    "attributes": "object",
    "item": "object",
    "ifvalues": "object",
}
ITEM_ASPECTS: Final = {name: ASPECTS[name] for name in ("type", "target", "namecharset", "attributes", "item")}

#: Flags that a full model writes only when they are true.
_FLAGS: Final = ("matchversions", "readonly", "immutable", "required")


@dataclass(frozen=True, slots=True)
class DefinitionContext:
    """The surroundings of a definition.

    specified: the specification's own definitions at this place. charset: of the names here.
    versions: whether `matchversions` is meaningful here (MOD-35).
    taken: names that siblings of `ifvalues` may not have, because the level or an enclosing branch has them.
    """

    types: targets.Types
    specified: Definitions = field(default_factory=dict)
    charset: str = "strict"
    versions: bool = False
    taken: frozenset[str] = frozenset()


def full_definitions(given: Any, place: ModelPath, scope: DefinitionContext) -> Definitions:
    """The definitions of one level or object in the form of a full model.

    Raises: ModelError, ModelRequiredTrue, ModelScalarDefault.
    """
    rows = object_members(given, place)
    inner = replace(scope, taken=scope.taken | rows.keys())
    return {name: _attribute(name, row, (*place, name), inner) for name, row in rows.items()}


def _attribute(name: str, given: Any, place: ModelPath, scope: DefinitionContext) -> Definition:
    row = checked_aspects(given, ASPECTS, place)
    # Names derived from a type's own may be longer than an extension's (ENT-11).
    if name not in scope.specified and name != "*" and not CHARSETS[scope.charset].match(name):
        raise model_error(place, f"{name!r} is not a valid attribute name")
    if row.get("name", name) != name:
        raise model_error((*place, "name"), "it differs from its key")
    _check_common(row, place, scope)
    nested = _nested(name, row, place, scope)
    for rule in _RULES:
        rule(name, row, place, scope)
    return _written({**row, "name": name, **nested})


def _item(given: Any, place: ModelPath, scope: DefinitionContext) -> Definition:
    row = checked_aspects(given, ITEM_ASPECTS, place)
    _check_common(row, place, scope)
    return _written({**row, **_nested("", row, place, replace(scope, versions=False))})


def _check_common(row: Definition, place: ModelPath, scope: DefinitionContext) -> None:
    """Checks the rules for a value's type, which attributes and items share."""
    wanted = row.get("type")
    if wanted not in values.SCALARS | values.COMPLEX:
        raise model_error((*place, "type"), f"{wanted!r} is not a data type" if wanted else "it is required")
    if "target" in row:
        _check_target(row["target"], wanted, (*place, "target"), scope)
    if "namecharset" in row and (wanted != "object" or row["namecharset"].lower() not in CHARSETS):
        raise model_error((*place, "namecharset"), "it has to be strict or extended, and is for objects only")
    if row.get("attributes") and wanted != "object":
        raise model_error((*place, "attributes"), "only objects have attributes")
    if ("item" in row) != (wanted in ("array", "map")):
        raise model_error((*place, "item"), "arrays and maps need an item, and nothing else has one")


def _check_target(target: str, wanted: str, place: ModelPath, scope: DefinitionContext) -> None:
    if wanted not in values.TARGETABLE:
        raise model_error(place, "only uri, url and xid have a target")
    if not targets.target_exists(target, scope.types):
        raise model_error(
            place, f"{target!r} does not name a type of this model, such as /dirs or /dirs/files[/versions]"
        )


def _nested(name: str, row: Definition, place: ModelPath, scope: DefinitionContext) -> dict[str, Any]:
    """The definitions inside a definition, in the form of a full model."""
    specified = scope.specified.get(name, {})
    inside = DefinitionContext(
        types=scope.types,
        specified=specified.get("attributes", {}),
        charset=row.get("namecharset", "strict").lower(),
        versions=scope.versions,
    )
    nested: dict[str, Any] = {}
    if row["type"] == "object" and "attributes" in row:
        nested["attributes"] = full_definitions(row["attributes"], (*place, "attributes"), inside)
    if "item" in row:
        nested["item"] = _item(row["item"], (*place, "item"), inside)
    if row.get("ifvalues"):
        nested["ifvalues"] = _ifvalues(row, (*place, "ifvalues"), scope)
    return nested


def _ifvalues(row: Definition, place: ModelPath, scope: DefinitionContext) -> dict[str, Any]:
    inner = replace(scope, specified={}, versions=False)
    keys: set[str] = set()
    branches = {}
    for key, branch in row["ifvalues"].items():
        here = (*place, key)
        if not key or key.startswith("^") or key.casefold() in keys:
            raise model_error(here, "a value must not be empty, start with ^, or appear twice in any letter case")
        keys.add(key.casefold())
        given = checked_aspects(branch, {"siblingattributes": "object"}, here).get("siblingattributes", {})
        clash = sorted(scope.taken & object_members(given, here).keys())
        if clash:
            raise model_error(
                (*here, "siblingattributes", clash[0]), "another attribute at this level has this name already"
            )
        branches[key] = {"siblingattributes": full_definitions(given, (*here, "siblingattributes"), inner)}
    return branches


def _written(row: Definition) -> Definition:
    """A definition in its order, without redundant aspects (MOD-99)."""
    kept = {name: value for name, value in row.items() if name not in _FLAGS or value}
    if not kept.get("enum"):
        kept.pop("enum", None)
        if kept.get("strict", True):
            kept.pop("strict", None)
    if "namecharset" in kept:
        kept["namecharset"] = kept["namecharset"].lower()
        if kept["namecharset"] == "strict":
            del kept["namecharset"]
    for name in ("attributes", "ifvalues"):
        if name in kept and not kept[name]:
            del kept[name]
    if "enum" in kept:
        kept.setdefault("strict", True)
    return {name: kept[name] for name in ASPECTS if name in kept}


def _check_star(name: str, row: Definition, place: ModelPath, scope: DefinitionContext) -> None:
    if name != "*":
        return
    for aspect in ("readonly", "required", "ifvalues", "matchversions"):
        if row.get(aspect):
            raise model_error((*place, aspect), "it has no meaning for *")


def _check_immutable(name: str, row: Definition, place: ModelPath, scope: DefinitionContext) -> None:
    if row.get("immutable") and name not in scope.specified:
        raise model_error((*place, "immutable"), "only spec-defined attributes are immutable")


def _check_enum(name: str, row: Definition, place: ModelPath, scope: DefinitionContext) -> None:
    if not row.get("enum"):
        return
    item = row.get("item")
    # One of the published models has its enum on an array of strings; it then applies to the items (EP-02).
    of = item if row["type"] == "array" and isinstance(item, dict) else row
    if of.get("type") not in values.SCALARS:
        raise model_error((*place, "enum"), "only scalars and arrays of scalars have an enum")
    for index, value in enumerate(row["enum"]):
        check_value(value, of, (*place, "enum", index), scope.types)


def _check_default(name: str, row: Definition, place: ModelPath, scope: DefinitionContext) -> None:
    if "default" not in row:
        return
    if row["type"] not in values.SCALARS:
        raise ModelScalarDefault(name=dot_path.text(place))
    if not row.get("required"):
        raise ModelRequiredTrue(name=dot_path.text(place))
    check_value(row["default"], row, (*place, "default"), scope.types)
    if row.get("strict", True):
        check_enum(row["default"], row.get("enum"), (*place, "default"))


def _check_matchversions(name: str, row: Definition, place: ModelPath, scope: DefinitionContext) -> None:
    if row.get("matchversions") and not (scope.versions and row["type"] in values.SCALARS):
        raise model_error((*place, "matchversions"), "it is for scalar, statically defined attributes of Versions only")


def _check_ifvalues(name: str, row: Definition, place: ModelPath, scope: DefinitionContext) -> None:
    keys = row.get("ifvalues")
    if not keys:
        return
    if row["type"] not in values.SCALARS:
        raise model_error((*place, "ifvalues"), "only scalars have ifvalues")
    allowed = {values.fold_value(value) for value in row.get("enum", ())}
    for key in keys:
        if allowed and row.get("strict", True) and key.casefold() not in allowed:
            raise model_error((*place, "ifvalues", key), "the enum does not have this value")


_RULES: Final[tuple[Callable[[str, Definition, ModelPath, DefinitionContext], None], ...]] = (
    _check_star,
    _check_immutable,
    _check_enum,
    _check_default,
    _check_matchversions,
    _check_ifvalues,
)


def check_value(value: Any, definition: Definition, place: ModelPath, types: targets.Types) -> None:
    """Checks that a value is of a definition's scalar type. Raises: ModelError."""
    try:
        values.scalar_check(definition["type"], types, definition.get("target"))(value)
    except InvalidValue as flaw:
        raise model_error(place, flaw.detail) from None


def check_enum(value: Any, enum: Collection[Any] | None, place: ModelPath) -> None:
    """Checks that a non-empty enum contains a value. Raises: ModelError."""
    if enum and value not in enum:
        raise model_error(place, f"{values.string_form(value)!r} is not in the enum")


__all__ = ["ASPECTS", "DefinitionContext", "check_enum", "check_value", "full_definitions"]

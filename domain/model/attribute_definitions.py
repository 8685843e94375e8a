"""The language of attribute definitions: validates them, and converts them into the form of a full model.

Spec: Registry Model 1.0-rc4, "Registry Model".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from annals.domain.errors.problems import ModelRequiredTrue, ModelScalarDefault
from annals.domain.model.compiled_attributes import CHARSETS
from annals.domain.model.model_errors import ModelPath, checked_aspects, model_error, object_members
from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.model.validation import targets, values
from annals.domain.model.validation.value_errors import InvalidValue
from annals.domain.values import dot_path

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
_FLAG_ASPECTS: Final = ("matchversions", "readonly", "immutable", "required")


@dataclass(frozen=True, slots=True)
class DefinitionContext:
    """The surroundings of a definition.

    spec_definitions: the specification's own definitions at this place. charset: of the names here.
    is_version_level: whether `matchversions` is meaningful here (MOD-35).
    reserved_names: names that siblings of `ifvalues` may not have, because the level or an enclosing branch has them.
    """

    types: targets.Types
    spec_definitions: Definitions = field(default_factory=dict)
    charset: str = "strict"
    is_version_level: bool = False
    reserved_names: frozenset[str] = frozenset()


def full_definitions(definitions: Any, model_path: ModelPath, scope: DefinitionContext) -> Definitions:
    """The definitions of one level or object in the form of a full model.

    Raises: ModelError, ModelRequiredTrue, ModelScalarDefault.
    """
    rows = object_members(definitions, model_path)
    inner_scope = replace(scope, reserved_names=scope.reserved_names | rows.keys())
    return {name: _full_attribute(name, row, (*model_path, name), inner_scope) for name, row in rows.items()}


def _full_attribute(name: str, definition: Any, model_path: ModelPath, scope: DefinitionContext) -> Definition:
    row = checked_aspects(definition, ASPECTS, model_path)
    # Names derived from a type's own may be longer than an extension's (ENT-11).
    if name not in scope.spec_definitions and name != "*" and not CHARSETS[scope.charset].match(name):
        raise model_error(model_path, f"{name!r} is not a valid attribute name")
    if row.get("name", name) != name:
        raise model_error((*model_path, "name"), "it differs from its key")
    _check_common(row, model_path, scope)
    nested = _full_nested(name, row, model_path, scope)
    for rule in _RULES:
        rule(name, row, model_path, scope)
    return _normal_definition({**row, "name": name, **nested})


def _full_item(definition: Any, model_path: ModelPath, scope: DefinitionContext) -> Definition:
    row = checked_aspects(definition, ITEM_ASPECTS, model_path)
    _check_common(row, model_path, scope)
    return _normal_definition({**row, **_full_nested("", row, model_path, replace(scope, is_version_level=False))})


def _check_common(row: Definition, model_path: ModelPath, scope: DefinitionContext) -> None:
    """Checks the rules for a value's type, which attributes and items share."""
    type_name = row.get("type")
    if type_name not in values.SCALARS | values.COMPLEX:
        raise model_error((*model_path, "type"), f"{type_name!r} is not a data type" if type_name else "it is required")
    if "target" in row:
        _check_target(row["target"], type_name, (*model_path, "target"), scope)
    if "namecharset" in row and (type_name != "object" or row["namecharset"].lower() not in CHARSETS):
        raise model_error((*model_path, "namecharset"), "it has to be strict or extended, and is for objects only")
    if row.get("attributes") and type_name != "object":
        raise model_error((*model_path, "attributes"), "only objects have attributes")
    if ("item" in row) != (type_name in ("array", "map")):
        raise model_error((*model_path, "item"), "arrays and maps need an item, and nothing else has one")


def _check_target(target: str, type_name: str, model_path: ModelPath, scope: DefinitionContext) -> None:
    if type_name not in values.TARGETABLE:
        raise model_error(model_path, "only uri, url and xid have a target")
    if not targets.target_exists(target, scope.types):
        raise model_error(
            model_path, f"{target!r} does not name a type of this model, such as /dirs or /dirs/files[/versions]"
        )


def _full_nested(name: str, row: Definition, model_path: ModelPath, scope: DefinitionContext) -> dict[str, Any]:
    """The definitions inside a definition, in the form of a full model."""
    specified = scope.spec_definitions.get(name, {})
    inner_scope = DefinitionContext(
        types=scope.types,
        spec_definitions=specified.get("attributes", {}),
        charset=row.get("namecharset", "strict").lower(),
        is_version_level=scope.is_version_level,
    )
    nested: dict[str, Any] = {}
    if row["type"] == "object" and "attributes" in row:
        nested["attributes"] = full_definitions(row["attributes"], (*model_path, "attributes"), inner_scope)
    if "item" in row:
        nested["item"] = _full_item(row["item"], (*model_path, "item"), inner_scope)
    if row.get("ifvalues"):
        nested["ifvalues"] = _full_ifvalues(row, (*model_path, "ifvalues"), scope)
    return nested


def _full_ifvalues(row: Definition, model_path: ModelPath, scope: DefinitionContext) -> dict[str, Any]:
    inner_scope = replace(scope, spec_definitions={}, is_version_level=False)
    keys: set[Hashable] = set()
    branches = {}
    for key, branch in row["ifvalues"].items():
        branch_path = (*model_path, key)
        if not key or key.startswith("^") or values.switch_key(row["type"], key) in keys:
            detail = "a value must not be empty, start with ^, or be there twice, in any letter case or notation"
            raise model_error(branch_path, detail)
        keys.add(values.switch_key(row["type"], key))
        siblings = checked_aspects(branch, {"siblingattributes": "object"}, branch_path).get("siblingattributes", {})
        duplicates = sorted(scope.reserved_names & object_members(siblings, branch_path).keys())
        if duplicates:
            raise model_error(
                (*branch_path, "siblingattributes", duplicates[0]),
                "another attribute at this level has this name already",
            )
        branches[key] = {
            "siblingattributes": full_definitions(siblings, (*branch_path, "siblingattributes"), inner_scope)
        }
    return branches


def _normal_definition(row: Definition) -> Definition:
    """A definition in its order, without redundant aspects (MOD-99)."""
    retained = {name: value for name, value in row.items() if name not in _FLAG_ASPECTS or value}
    if not retained.get("enum"):
        retained.pop("enum", None)
        if retained.get("strict", True):
            retained.pop("strict", None)
    if "namecharset" in retained:
        retained["namecharset"] = retained["namecharset"].lower()
        if retained["namecharset"] == "strict":
            del retained["namecharset"]
    for name in ("attributes", "ifvalues"):
        if name in retained and not retained[name]:
            del retained[name]
    if "enum" in retained:
        retained.setdefault("strict", True)
    return {name: retained[name] for name in ASPECTS if name in retained}


def _check_star(name: str, row: Definition, model_path: ModelPath, scope: DefinitionContext) -> None:
    if name != "*":
        return
    for aspect in ("readonly", "required", "ifvalues", "matchversions"):
        if row.get(aspect):
            raise model_error((*model_path, aspect), "it has no meaning for *")


def _check_immutable(name: str, row: Definition, model_path: ModelPath, scope: DefinitionContext) -> None:
    if row.get("immutable") and name not in scope.spec_definitions:
        raise model_error((*model_path, "immutable"), "only spec-defined attributes are immutable")


def _check_enum(name: str, row: Definition, model_path: ModelPath, scope: DefinitionContext) -> None:
    if not row.get("enum"):
        return
    item = row.get("item")
    # One of the published models has its enum on an array of strings; it then applies to the items (EP-02).
    scalar_definition = item if row["type"] == "array" and isinstance(item, dict) else row
    if scalar_definition.get("type") not in values.SCALARS:
        raise model_error((*model_path, "enum"), "only scalars and arrays of scalars have an enum")
    for index, value in enumerate(row["enum"]):
        check_value(value, scalar_definition, (*model_path, "enum", index), scope.types)


def _check_default(name: str, row: Definition, model_path: ModelPath, scope: DefinitionContext) -> None:
    if "default" not in row:
        return
    if row["type"] not in values.SCALARS:
        raise ModelScalarDefault(name=dot_path.text(model_path))
    if not row.get("required"):
        raise ModelRequiredTrue(name=dot_path.text(model_path))
    check_value(row["default"], row, (*model_path, "default"), scope.types)
    check_size(name, row["default"], (*model_path, "default"))
    if row.get("strict", True):
        check_enum(row["default"], row["type"], row.get("enum"), (*model_path, "default"))


def _check_matchversions(name: str, row: Definition, model_path: ModelPath, scope: DefinitionContext) -> None:
    if row.get("matchversions") and not (scope.is_version_level and row["type"] in values.SCALARS):
        raise model_error(
            (*model_path, "matchversions"), "it is for scalar, statically defined attributes of Versions only"
        )


def _check_ifvalues(name: str, row: Definition, model_path: ModelPath, scope: DefinitionContext) -> None:
    keys = row.get("ifvalues")
    if not keys:
        return
    if row["type"] not in values.SCALARS:
        raise model_error((*model_path, "ifvalues"), "only scalars have ifvalues")
    allowed = {values.switch_key(row["type"], value) for value in row.get("enum", ())}
    for key in keys:
        if allowed and row.get("strict", True) and values.switch_key(row["type"], key) not in allowed:
            raise model_error((*model_path, "ifvalues", key), "the enum does not have this value")


_RULES: Final[tuple[Callable[[str, Definition, ModelPath, DefinitionContext], None], ...]] = (
    _check_star,
    _check_immutable,
    _check_enum,
    _check_default,
    _check_matchversions,
    _check_ifvalues,
)


def check_value(value: Any, definition: Definition, model_path: ModelPath, types: targets.Types) -> None:
    """Checks that a value is of a definition's scalar type. Raises: ModelError."""
    try:
        values.scalar_check(definition["type"], types, definition.get("target"))(value)
    except InvalidValue as invalid_value:
        raise model_error(model_path, invalid_value.detail) from None


def check_size(name: str, value: Any, model_path: ModelPath) -> None:
    """Checks that a default fits in a header with the name of its attribute (ENT-13). Raises: ModelError."""
    try:
        values.size_check(name)(value)
    except InvalidValue as invalid_value:
        raise model_error(model_path, invalid_value.detail) from None


def check_enum(value: Any, type_name: str, enum: Collection[Any] | None, model_path: ModelPath) -> None:
    """Checks that a non-empty enum of a scalar data type contains a value. Raises: ModelError."""
    key = values.equality_key(type_name, value)
    if enum and all(key != values.equality_key(type_name, allowed) for allowed in enum):
        raise model_error(model_path, f"{values.string_form(value)!r} is not in the enum")


__all__ = ["ASPECTS", "DefinitionContext", "check_enum", "check_size", "check_value", "full_definitions"]

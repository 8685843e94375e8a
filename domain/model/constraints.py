"""`constraints`: the requirements of a Group type for the Versions of its Resources, validated against the model.

Spec: Registry Model 1.0-rc4, "groups.<STRING>.constraints".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from annals.domain.model.attribute_definitions import check_enum, check_size, check_value
from annals.domain.model.level import SPEC_RULES
from annals.domain.model.model_errors import ModelPath, checked_aspects, model_error, object_members
from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.model.validation import values
from annals.domain.model.validation.targets import Types
from annals.domain.model.validation.value_errors import InvalidValue
from annals.domain.values import dot_path

ASPECTS: Final = {"default": "any", "enum": "array", "equals": "string"}


def check_constraints(
    rows: Any, group: Definitions, versions: Mapping[str, Definitions], types: Types, model_path: ModelPath
) -> dict[str, dict[str, Any]]:
    """The constraints of a Group type or a Group, without aspects that have no effect.

    group: definitions of the Group level. versions: those of the Version levels, by plural.
    Raises: ModelError.
    """
    return {
        key: _full_constraint(key, constraint, group, versions, types, (*model_path, key))
        for key, constraint in object_members(rows, model_path).items()
    }


def check_defaults(rows: Mapping[str, Mapping[str, Any]], model_path: ModelPath) -> None:
    """Checks that Versions can have the defaults of valid constraints: by their size, and by the specification's own
    rules about some attributes.

    Only for constraints that are written: stored ones may be older than these checks. Raises: ModelError.
    """
    for key, row in rows.items():
        if (default := row.get("default")) is None:
            continue
        _, path = parse_constraint_key(key)
        check_size(path[-1], default, (*model_path, key, "default"))
        if len(path) == 1 and path[0] in SPEC_RULES:
            _check_spec_rule(path[0], default, (*model_path, key, "default"))


#: Why no Version gets the URL of its document by default.
NO_URL_DEFAULT: Final = "a URL by default would take the place of each document that is written"


def check_url_defaults(
    rows: Mapping[str, Mapping[str, Any]], singulars: Mapping[str, str], model_path: ModelPath
) -> None:
    """Checks that valid constraints set no default for the URL of documents (ENT-120).

    singulars: of the Resource types with documents, by plural. Raises: ModelError.
    """
    for key, row in rows.items():
        plural, path = parse_constraint_key(key)
        if "default" in row and plural in singulars and path == (f"{singulars[plural]}url",):
            raise model_error((*model_path, key, "default"), NO_URL_DEFAULT)


def _check_spec_rule(name: str, value: Any, model_path: ModelPath) -> None:
    try:
        SPEC_RULES[name](value)
    except InvalidValue as invalid_value:
        raise model_error(model_path, invalid_value.detail) from None


@lru_cache(maxsize=1024)
def parse_constraint_key(key: str) -> tuple[str, tuple[str, ...]]:
    """The Resource type (its plural) and the path of the attribute that a key names.

    Raises: ValueError for a key that is not a path of names.
    """
    plural, *path = dot_path.parse(key)
    if not isinstance(plural, str) or not path:
        raise ValueError(f"{key!r} does not name an attribute of a Resource type")
    return plural, _path_names(path, key)


def with_defaults(definitions: Definitions, plural: str, constraints: Mapping[str, Any]) -> Definitions:
    """The definitions of a Version level with the defaults that a Group type's constraints set (MOD-61)."""
    for key, constraint in constraints.items():
        resource, path = parse_constraint_key(key)
        if resource == plural and "default" in constraint:
            definitions = _with_default(definitions, path, constraint["default"])
    return definitions


def definition_at(definitions: Definitions, path: tuple[str, ...]) -> Definition | None:
    """The statically defined attribute at a path through objects; None if there is none."""
    row = definitions.get(path[0]) if path[0] != "*" else None
    if row is None or len(path) == 1:
        return row
    return definition_at(row.get("attributes", {}), path[1:]) if row["type"] == "object" else None


def _full_constraint(
    key: str,
    definition: Any,
    group: Definitions,
    versions: Mapping[str, Definitions],
    types: Types,
    model_path: ModelPath,
) -> dict[str, Any]:
    row = {
        name: value for name, value in checked_aspects(definition, ASPECTS, model_path).items() if value not in ("", [])
    }
    attribute = _constrained_attribute(key, versions, model_path)
    enum = row.get("enum")
    attribute_enum = attribute.get("enum") if attribute.get("strict", True) else None
    for index, value in enumerate(enum or ()):
        check_value(value, attribute, (*model_path, "enum", index), types)
        check_enum(value, attribute["type"], attribute_enum, (*model_path, "enum", index))
    default = row.get("default", attribute.get("default"))
    if default is not None:
        check_value(default, attribute, (*model_path, "default"), types)
        check_enum(default, attribute["type"], enum or attribute_enum, (*model_path, "default"))
    if "equals" in row:
        _check_equals(row["equals"], attribute, group, (*model_path, "equals"))
    return row


def _constrained_attribute(key: str, versions: Mapping[str, Definitions], model_path: ModelPath) -> Definition:
    try:
        plural, path = parse_constraint_key(key)
    except ValueError as error:
        raise model_error(model_path, str(error)) from None
    if plural not in versions:
        raise model_error(model_path, f"this Group type has no Resource type {plural}")
    return _require_scalar(definition_at(versions[plural], path), model_path)


def _check_equals(path: str, attribute: Definition, group: Definitions, model_path: ModelPath) -> None:
    try:
        names = _path_names(dot_path.parse(path), path)
    except ValueError as error:
        raise model_error(model_path, str(error)) from None
    group_attribute = _require_scalar(definition_at(group, names), model_path)
    if group_attribute["type"] != attribute["type"]:
        raise model_error(model_path, f"{group_attribute['type']} and {attribute['type']} are never equal")


def _require_scalar(definition: Definition | None, model_path: ModelPath) -> Definition:
    if definition is None or definition["type"] not in values.SCALARS:
        raise model_error(model_path, "it does not name a scalar attribute that is statically defined")
    return definition


def _path_names(path: Any, text: str) -> tuple[str, ...]:
    if not all(isinstance(step, str) for step in path):
        raise ValueError(f"{text!r} goes through an array")
    return tuple(path)


def _with_default(definitions: Definitions, path: tuple[str, ...], default: Any) -> Definitions:
    name, *remaining = path
    row = definitions[name]
    new_row = row | (
        {"attributes": _with_default(row["attributes"], tuple(remaining), default)}
        if remaining
        else {"default": default}
    )
    return definitions | {name: new_row}

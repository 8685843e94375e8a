"""The constraints in force in one Group: those of its type, narrowed by its own `constraints` attribute.

Spec: core 1.0-rc4, "constraints Attribute" (ENT-155).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.errors.problems import InvalidAttribute, ModelError
from domain.model import constraints
from domain.model.model_errors import model_error, object_members
from domain.model.types import GroupType

#: Constraints by the Resource type and the path of the attribute that they apply to.
ConstraintsByPath = dict[tuple[str, ...], dict[str, Any]]


def group_constraints(group: GroupType, given: Mapping[str, Any] | None, xid: str) -> ConstraintsByPath:
    """The constraints on the Versions of one Group. given: its `constraints` attribute, complete.

    Raises: InvalidAttribute if it is not a valid constraint, or wider than that of the type.
    """
    bounds = {_key(key): row for key, row in group.constraints.items()}
    try:
        for key, row in (given or {}).items():
            bounds |= _narrowed(group, key, row, bounds)
    except ModelError as problem:
        place, _, detail = problem.arguments["error_detail"].partition(": ")
        raise InvalidAttribute(xid, name=place, error_detail=detail) from None
    return bounds


def _narrowed(group: GroupType, key: str, given: Any, bounds: ConstraintsByPath) -> ConstraintsByPath:
    place = ("constraints", key)
    own = {aspect: value for aspect, value in object_members(given, place).items() if value not in ("", [])}
    try:
        wide = bounds.get(_key(key), {})
    except ValueError as error:
        raise model_error(place, str(error)) from None
    versions = {plural: type.version.definitions for plural, type in group.resources.items()}
    joined = {key: {**wide, **own}}
    checked = constraints.check_constraints(joined, group.level.definitions, versions, group.level.types, place[:1])
    if "enum" in wide and not all(value in wide["enum"] for value in own.get("enum", ())):
        raise model_error((*place, "enum"), "it has a value that the Group type's constraint does not allow")
    if "equals" in wide and own.get("equals", wide["equals"]) != wide["equals"]:
        raise model_error((*place, "equals"), f"the Group type's constraint says {wide['equals']}")
    return {_key(key): checked[key]}


def _key(key: str) -> tuple[str, ...]:
    plural, path = constraints.parse_constraint_key(key)
    return (plural, *path)

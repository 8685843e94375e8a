"""The constraints in force in one Group: those of its type, narrowed by its own `constraints` attribute.

Spec: core 1.0-rc4, "constraints Attribute" (ENT-155).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from annals.domain.errors.problems import InvalidAttribute, ModelError
from annals.domain.model import constraints
from annals.domain.model.model_errors import model_error, object_members
from annals.domain.model.spec_attributes import Definitions
from annals.domain.model.types import GroupType
from annals.domain.model.validation.values import equality_key

_ATTRIBUTE: Final = "constraints"

#: Constraints by the Resource type and the path of the attribute that they apply to.
ConstraintsByPath = dict[tuple[str, ...], dict[str, Any]]

#: The definitions of the Version levels by the plural of the Resource type.
VersionDefinitions = Mapping[str, Definitions]


def group_constraints(group: GroupType, rows: Mapping[str, Any] | None, xid: str) -> ConstraintsByPath:
    """The constraints on the Versions of one Group. rows: its `constraints` attribute, complete.

    Raises: InvalidAttribute if it is not a valid constraint, or wider than that of the type.
    """
    bounds = {_constraint_path(key): row for key, row in group.constraints.items()}
    with _as_invalid_attribute(xid):
        for key, row in (rows or {}).items():
            bounds |= _narrow_constraint(group, key, row, bounds)
    return bounds


def check_defaults(group: GroupType, rows: Mapping[str, Any] | None, xid: str) -> None:
    """Checks the defaults of valid constraints that are written to a Group. Raises: InvalidAttribute."""
    singulars = {plural: type.singular for plural, type in group.resources.items() if type.hasdocument}
    with _as_invalid_attribute(xid):
        constraints.check_defaults(rows or {}, (_ATTRIBUTE,))
        constraints.check_url_defaults(rows or {}, singulars, (_ATTRIBUTE,))


@contextmanager
def _as_invalid_attribute(xid: str) -> Iterator[None]:
    """Raises: InvalidAttribute for a ModelError in the block."""
    try:
        yield
    except ModelError as problem:
        path_text, _, detail = problem.arguments["error_detail"].partition(": ")
        raise InvalidAttribute(xid, name=path_text, error_detail=detail) from None


def _narrow_constraint(group: GroupType, key: str, definition: Any, bounds: ConstraintsByPath) -> ConstraintsByPath:
    model_path = (_ATTRIBUTE, key)
    own_aspects = {
        aspect: value for aspect, value in object_members(definition, model_path).items() if value not in ("", [])
    }
    try:
        type_constraint = bounds.get(_constraint_path(key), {})
    except ValueError as error:
        raise model_error(model_path, str(error)) from None
    versions = {plural: type.version.definitions for plural, type in group.resources.items()}
    combined = {key: {**type_constraint, **own_aspects}}
    validated = constraints.check_constraints(
        combined, group.level.definitions, versions, group.level.types, model_path[:1]
    )
    if "enum" in type_constraint and _is_wider(
        _constraint_path(key), own_aspects.get("enum", ()), type_constraint["enum"], versions
    ):
        raise model_error((*model_path, "enum"), "it has a value that the Group type's constraint does not allow")
    if (
        "equals" in type_constraint
        and own_aspects.get("equals", type_constraint["equals"]) != type_constraint["equals"]
    ):
        raise model_error((*model_path, "equals"), f"the Group type's constraint says {type_constraint['equals']}")
    return {_constraint_path(key): validated[key]}


def _is_wider(path: tuple[str, ...], own: Iterable[Any], allowed: Iterable[Any], versions: VersionDefinitions) -> bool:
    """Whether a Group's own enum of an attribute has a value that its type's enum does not have."""
    plural, *names = path
    attribute = constraints.definition_at(versions[plural], tuple(names))
    assert attribute is not None, "constraints of other attributes are refused before"
    keys = {equality_key(attribute["type"], value) for value in allowed}
    return any(equality_key(attribute["type"], value) not in keys for value in own)


def _constraint_path(key: str) -> tuple[str, ...]:
    plural, path = constraints.parse_constraint_key(key)
    return (plural, *path)

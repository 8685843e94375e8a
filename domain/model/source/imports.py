"""`ximportresources`: Resource types of one Group type that another one shares.

Spec: Registry Model 1.0-rc4, "Reuse of Resource Definitions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.model.model_errors import ModelPath, model_error, object_members
from annals.domain.values import xid as xids

#: The maximum number of Group and Resource types in one model. A Resource type counts once for each Group type that has
#: it: each has dozens of attributes of its own, which are compiled while other writers wait.
MAX_TYPES: Final = 500

#: Resource types by their plural; values are definitions and their origin.
Resources = dict[str, tuple[Any, str]]


def expand_imports(groups: Mapping[str, Any]) -> dict[str, Resources]:
    """The Resource types of every Group type, own ones first, each with its origin (`/messagegroups/messages`).

    groups: the Group types of a modelsource, includes resolved.
    Raises: ModelError.
    """
    resources: dict[str, Resources] = {}
    types = len(groups)
    for plural in groups:
        if types <= MAX_TYPES:
            resources[plural] = _resources_of_group(plural, groups, ())
            types += len(resources[plural])
    if types > MAX_TYPES:
        raise model_error(
            (), f"it has more than {MAX_TYPES} types of Groups and Resources, imported ones counted each time"
        )
    return resources


def _resources_of_group(plural: str, groups: Mapping[str, Any], chain: tuple[str, ...]) -> Resources:
    group = object_members(groups[plural], ("groups", plural))
    model_path: ModelPath = ("groups", plural, "ximportresources")
    own_resources = object_members(group.get("resources", {}), ("groups", plural, "resources"))
    resources: Resources = {name: (row, xids.join(plural, name)) for name, row in own_resources.items()}
    for reference in _parse_references(group.get("ximportresources", []), model_path):
        name = reference.rpartition("/")[2]
        if name in resources:
            raise model_error(model_path, f"this Group type has a Resource type {name} already, so {reference} clashes")
        resources[name] = _imported_definition(reference, plural, groups, chain)
    return resources


def _imported_definition(
    reference: str, importer: str, groups: Mapping[str, Any], chain: tuple[str, ...]
) -> tuple[Any, str]:
    model_path: ModelPath = ("groups", importer, "ximportresources")
    names = xids.segments(reference) if reference.startswith("/") else ()
    if len(names) != 2 or names[0] not in groups:
        raise model_error(model_path, f"{reference} does not name a Resource type of this model")
    group, resource = names
    if group == importer:
        raise model_error(model_path, f"{reference} is of this Group type itself")
    if f"{importer} {reference}" in chain:
        raise model_error(model_path, f"{reference} imports itself through other types")
    return _owner_definition(group, resource, reference, groups, (*chain, f"{importer} {reference}"))


def _owner_definition(
    group: str, resource: str, reference: str, groups: Mapping[str, Any], chain: tuple[str, ...]
) -> tuple[Any, str]:
    """The definition of a reference; its Group type may itself import it."""
    definition = object_members(groups[group], ("groups", group))
    own_resources = object_members(definition.get("resources", {}), ("groups", group, "resources"))
    if resource in own_resources:
        return own_resources[resource], xids.join(group, resource)
    model_path: ModelPath = ("groups", group, "ximportresources")
    for next_reference in _parse_references(definition.get("ximportresources", []), model_path):
        if next_reference.rpartition("/")[2] == resource:
            return _imported_definition(next_reference, group, groups, chain)
    raise model_error(model_path[:2], f"it has no Resource type {resource} that {reference} could import")


def _parse_references(value: Any, model_path: ModelPath) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(reference, str) for reference in value):
        raise model_error(model_path, "it needs to be an array of Resource types such as /dirs/files")
    return value

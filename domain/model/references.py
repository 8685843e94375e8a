"""The values by which an entity refers to others: its `xref`, attributes with a `target`, xids, and URIs of schemas.

Spec: Registry Model 1.0-rc4, "attributes.<STRING>.target"; message 1.0-rc4, "dataschemauri". Rule UI-77.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.domain.model.active_definitions import active_definitions
from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.model.types import Model
from annals.domain.values import xid as xids
from annals.domain.values.dot_path import Step

_META: Final = "meta"
_XREF: Final = "xref"
#: Attributes that refer to others though no target says so, by the collection of the entities that have them.
_URI_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "messages": frozenset({"basemessageuri", "dataschemauri", "dataschemaxid"}),
    "endpoints": frozenset({"messagegroups"}),
}


class ReferenceValue(NamedTuple):
    """A value that names another entity. path: of the attribute."""

    path: tuple[Step, ...]
    uri: str


def reference_values(model: Model, type: str, attributes: Mapping[str, Any]) -> Iterator[ReferenceValue]:
    """The references of an entity as it is stored, in the order of its attributes. type: `xids.type_of` its xid."""
    group, *below = type.split(".")
    group_type = model.groups.get(group)
    resource_type = group_type.resources.get(below[0]) if group_type and below else None
    if type == xids.REGISTRY:
        yield from _members((), model.registry.definitions, attributes)
    elif resource_type is not None:
        own = {name: value for name, value in attributes.items() if name != _META}
        yield from _members((), resource_type.version.definitions, own, _URI_NAMES.get(below[0], frozenset()))
        meta = attributes.get(_META) if len(below) == 1 else None
        if isinstance(meta, dict):
            yield from _meta_values(resource_type.meta.definitions, meta)
    elif group_type is not None and not below:
        yield from _members((), group_type.level.definitions, attributes, _URI_NAMES.get(group, frozenset()))


def _meta_values(definitions: Definitions, meta: Mapping[str, Any]) -> Iterator[ReferenceValue]:
    if isinstance(xref := meta.get(_XREF), str):
        yield ReferenceValue((_META, _XREF), xref)
    yield from _members((_META,), definitions, {name: value for name, value in meta.items() if name != _XREF})


def _members(
    path: tuple[Step, ...],
    definitions: Definitions,
    members: Mapping[str, Any],
    uri_names: frozenset[str] = frozenset(),
) -> Iterator[ReferenceValue]:
    """The references in the members of an object. uri_names: members that refer to others without a target."""
    active = active_definitions(definitions, members)
    for name, value in members.items():
        definition = active.get(name) or active.get("*")
        if name in uri_names:
            yield from _texts((*path, name), value)
        elif definition is not None:
            yield from _values((*path, name), definition, value)


def _values(path: tuple[Step, ...], definition: Definition, value: Any) -> Iterator[ReferenceValue]:
    match definition["type"], value:
        case "object", dict():
            yield from _members(path, definition.get("attributes", {}), value)
        case "map", dict():
            for key, item in value.items():
                yield from _values((*path, key), definition["item"], item)
        case "array", list():
            for index, item in enumerate(value):
                yield from _values((*path, index), definition["item"], item)
        case type, str() if type == "xid" or definition.get("target"):
            yield ReferenceValue(path, value)


def _texts(path: tuple[Step, ...], value: Any) -> Iterator[ReferenceValue]:
    """A text, or the texts of an array."""
    items: Sequence[tuple[tuple[Step, ...], Any]] = (
        [((*path, index), item) for index, item in enumerate(value)] if isinstance(value, list) else [(path, value)]
    )
    yield from (ReferenceValue(item_path, item) for item_path, item in items if isinstance(item, str))

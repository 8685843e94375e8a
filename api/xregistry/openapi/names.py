"""Names of schemas and operations, as generators of clients need them.

Generators make classes, functions and files of names, and ignore case and punctuation while they do. So the names of a
document are made of singulars (`SchemagroupSchema`), and differ in more than that. The code names schemas by their
place in the model instead (`schemagroups.schemas`), which needs to know nothing of other names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from annals.api.xregistry.openapi.schemas import COLLECTIONS_SUFFIX, MAP_SUFFIX, REGISTRY, WRITE_SUFFIX
from annals.domain.model import Model

_REFERENCE: Final = "#/components/schemas/"
_INPUT: Final = "Input"
#: The endings of names, by the suffix in the code.
_ENDINGS: Final = {
    suffix + form: ending + form_ending
    for suffix, ending in {"": "", WRITE_SUFFIX: _INPUT}.items()
    for form, form_ending in {"": "", MAP_SUFFIX: "Map", COLLECTIONS_SUFFIX: "Collections"}.items()
}


def with_client_names(document: dict[str, Any], model: Model) -> dict[str, Any]:
    """The document with its names for clients. Cost: O(size of the document)."""
    names = _schema_names(model, document["components"]["schemas"])
    renamed: dict[str, Any] = _with_references(document, names)
    components = renamed["components"]
    components["schemas"] = {names.get(name, name): schema for name, schema in components["schemas"].items()}
    _number_operations(renamed["paths"])
    return renamed


def pascal_case(name: str) -> str:
    """The name of a type as a part of a class name: `big_box` is `BigBox`."""
    return "".join(word.capitalize() for word in name.split("_"))


def fold(name: str) -> str:
    """What generators keep of a name."""
    return re.sub("[^a-z0-9]", "", name.lower())


def _schema_names(model: Model, schemas: Mapping[str, Any]) -> dict[str, str]:
    """The names of the model's schemas in the document, by their names in the code."""
    wanted = {
        place + suffix: name + ending
        for place, name in _places(model)
        for suffix, ending in _ENDINGS.items()
        if place + suffix in schemas
    }
    taken = {fold(name) for name in schemas if name not in wanted}
    return {place: _unique(name, taken) for place, name in wanted.items()}


def _places(model: Model) -> Iterator[tuple[str, str]]:
    yield REGISTRY, REGISTRY
    for plural, group in model.groups.items():
        name = pascal_case(group.singular)
        yield plural, name
        for resource in group.resources.values():
            place, resource_name = f"{plural}.{resource.plural}", name + pascal_case(resource.singular)
            yield place, resource_name
            yield f"{place}.meta", f"{resource_name}Meta"
            yield f"{place}.versions", f"{resource_name}Version"


def _unique(wanted: str, taken: set[str]) -> str:
    """The wanted name, with a number if it is taken. It is taken afterwards."""
    name, number = wanted, 1
    while fold(name) in taken:
        number += 1
        name = f"{wanted}{number}"
    taken.add(fold(name))
    return name


def _with_references(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_with_references(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    reference = value.get("$ref")
    if isinstance(reference, str) and reference.startswith(_REFERENCE):
        name = reference.removeprefix(_REFERENCE)
        return {**value, "$ref": _REFERENCE + names.get(name, name)}
    return {key: _with_references(each, names) for key, each in value.items()}


def _number_operations(paths: Mapping[str, Any]) -> None:
    """Gives operations with equal ids different ones, in place."""
    taken: set[str] = set()
    for item in paths.values():
        for key, row in item.items():
            if key != "parameters":
                row["operationId"] = _unique(row["operationId"], taken)

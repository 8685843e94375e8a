"""Moves schemas with a `title` to the components of a document, because generators name their classes after these."""

from __future__ import annotations

from typing import Any, NamedTuple

from annals.api.openapi.builders import OTHER_MEMBERS, Schema


class NamedSchemas(NamedTuple):
    """A part of a document with references, and the schemas that they refer to, by name."""

    part: Any
    schemas: dict[str, Schema]


def move_named_schemas(part: Any) -> NamedSchemas:
    """The part with a reference in place of each schema that has a `title`.

    Objects also say that they may have other members, because generators refuse these where a schema does not say so.

    Raises: ValueError for two different schemas with one title.
    """
    schemas: dict[str, Schema] = {}
    return NamedSchemas(_moved(part, schemas), schemas)


def _moved(value: Any, schemas: dict[str, Schema]) -> Any:
    if isinstance(value, list):
        return [_moved(each, schemas) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _moved(each, schemas) for name, each in value.items()}
    if found.get("type") == "object" and "properties" in found:
        found.setdefault("additionalProperties", OTHER_MEMBERS)
    if isinstance(title := found.get("title"), str):
        return _reference(title, {name: row for name, row in found.items() if name != "title"}, schemas)
    return found


def _reference(name: str, schema: Schema, schemas: dict[str, Schema]) -> Schema:
    if schemas.setdefault(name, schema) != schema:
        raise ValueError(f"two schemas have the title {name}")
    return {"$ref": f"#/components/schemas/{name}"}

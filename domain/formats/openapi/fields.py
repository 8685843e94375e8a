"""The fields of the schemas in an OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annals.domain.formats.fields import SchemaField
from annals.domain.formats.jsonschema.fields import JsonSchemaFields
from annals.domain.values.json_pointer import join_pointer


def fields(parsed: dict[str, Any]) -> Iterator[SchemaField]:
    """The properties of each schema of the components, as `Schema.property`."""
    components = parsed.get("components")
    steps = ("components", "schemas") if isinstance(components, dict) else ("definitions",)
    schemas = components.get("schemas") if isinstance(components, dict) else parsed.get("definitions")
    for name, schema in schemas.items() if isinstance(schemas, dict) else ():
        yield from JsonSchemaFields(parsed).walk(schema, join_pointer("", *steps, name), name)


def document(parsed: dict[str, Any]) -> Any:
    """The JSON value of the document."""
    return parsed

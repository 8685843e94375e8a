"""The fields of a GraphQL schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphql import is_introspection_type, is_non_null_type, is_specified_scalar_type

from annals.domain.formats.fields import SchemaField
from annals.domain.formats.graphql import GraphqlDocument


def fields(parsed: GraphqlDocument) -> Iterator[SchemaField]:
    """The fields of each object, interface and input type, as `Type.field`; `optional` means that null is allowed."""
    for name, type in parsed.schema.type_map.items():
        if is_introspection_type(type) or is_specified_scalar_type(type):
            continue
        members: dict[str, Any] = getattr(type, "fields", {})
        for field_name, field in members.items():
            optional = not is_non_null_type(field.type)
            yield SchemaField(f"{name}.{field_name}", field_name, str(field.type), optional, field.description or "")

"""The fields of a GraphQL schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from graphql import (
    is_introspection_type,
    is_non_null_type,
    is_specified_directive,
    is_specified_scalar_type,
    print_ast,
)

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import SchemaField
from annals.domain.formats.graphql import GraphqlDocument

#: The words of the language for kinds of types, by the kind of their definition.
_KINDS: Final = {
    "object_type_definition": "type",
    "interface_type_definition": "interface",
    "input_object_type_definition": "input",
    "union_type_definition": "union",
    "enum_type_definition": "enum",
    "scalar_type_definition": "scalar",
}


def fields(parsed: GraphqlDocument) -> Iterator[SchemaField]:
    """The fields of each object, interface and input type, as `Type.field`; `optional` means that null is allowed."""
    for name, type in _declared_types(parsed):
        for field_name, field in _fields_of(type):
            yield _field(f"{name}.{field_name}", field_name, str(field.type), field)


def declarations(parsed: GraphqlDocument) -> Iterator[SchemaField]:
    """What a schema declares besides fields: types, values of enums, members of unions, arguments and directives."""
    for name, type in _declared_types(parsed):
        kind = _KINDS.get(getattr(type.ast_node, "kind", ""), "type")
        yield _declaration(name, name, kind, type)
        for interface in getattr(type, "interfaces", ()):
            yield _declaration(f"{name} implements {interface.name}", interface.name, "interface", type)
        for member in getattr(type, "types", ()):
            yield _declaration(f"{name} | {member.name}", member.name, "member", type)
        for value_name, value in getattr(type, "values", {}).items():
            yield _declaration(f"{name}.{value_name}", value_name, "value", value)
        for field_name, field in _fields_of(type):
            yield from _arguments(f"{name}.{field_name}", getattr(field, "args", {}))
            yield from _properties(f"{name}.{field_name}", field)
    for directive in parsed.schema.directives:
        if not is_specified_directive(directive):
            places = " | ".join(sorted(place.name for place in directive.locations))
            yield _declaration(f"@{directive.name}", directive.name, f"directive on {places}", directive)
            yield from _arguments(f"@{directive.name}", directive.args)


def text(parsed: GraphqlDocument) -> str:
    """The text of the schema."""
    return parsed.text


def _declared_types(parsed: GraphqlDocument) -> Iterator[tuple[str, Any]]:
    for name, type in parsed.schema.type_map.items():
        if not is_introspection_type(type) and not is_specified_scalar_type(type):
            yield name, type


def _fields_of(type: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(type, "fields", {}).items()


def _arguments(owner: str, arguments: dict[str, Any]) -> Iterator[SchemaField]:
    for name, argument in arguments.items():
        yield _field(f"{owner}({name}:)", name, str(argument.type), argument)
        yield from _properties(f"{owner}({name}:)", argument)


def _properties(path: str, element: Any) -> Iterator[SchemaField]:
    """The default and the deprecation of a field or an argument."""
    default = getattr(element.ast_node, "default_value", None)
    for name, value in (("default", default and print_ast(default)), ("deprecated", element.deprecation_reason)):
        if value is not None:
            yield SchemaField(f"{path} {name}", name, value, False, "", _location(element))


def _field(path: str, name: str, type: str, element: Any) -> SchemaField:
    optional = not is_non_null_type(element.type)
    return SchemaField(path, name, type, optional, element.description or "", _location(element))


def _declaration(path: str, name: str, type: str, element: Any) -> SchemaField:
    return SchemaField(path, name, type, False, element.description or "", _location(element))


def _location(element: Any) -> DocumentLocation | None:
    name = getattr(element.ast_node, "name", None)
    return DocumentLocation(line=name.loc.start_token.line) if name is not None and name.loc is not None else None

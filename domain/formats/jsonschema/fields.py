"""The fields of a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import MAX_DEPTH, SchemaField, join_path
from annals.domain.formats.jsonschema import SchemaGraph
from annals.domain.values.json_pointer import join_pointer

#: Keywords whose schemas describe the same value.
_COMBINING: Final = ("allOf", "anyOf", "oneOf")
#: Keywords that make a member optional, because a value may be valid without their schema.
_ALTERNATIVE: Final = frozenset({"anyOf", "oneOf"})


def fields(parsed: SchemaGraph) -> Iterator[SchemaField]:
    """The declared properties at every depth; references within the document are followed."""
    return JsonSchemaFields(parsed.document).walk(parsed.document, "", "")


def document(parsed: SchemaGraph) -> Any:
    """The JSON value of the schema."""
    return parsed.document


class JsonSchemaFields:
    """One walk through a document with JSON Schemas. document: what references lead into."""

    def __init__(self, document: Any) -> None:
        self._document = document

    def walk(
        self, schema: Any, pointer: str, path: str, open_schemas: tuple[int, ...] = (), optional: bool = False
    ) -> Iterator[SchemaField]:
        """The fields below a schema.

        pointer: to the schema. open_schemas: those that the path is inside of. optional: whether all fields are.
        """
        schema, pointer = self._resolve(schema, pointer)
        if not isinstance(schema, dict) or id(schema) in open_schemas or len(open_schemas) > MAX_DEPTH:
            return
        inside = (*open_schemas, id(schema))
        required = schema.get("required")
        required_names = set(map(str, required)) if isinstance(required, list) else set()
        for name, member in _members(schema, "properties"):
            member_path, member_pointer = join_path(path, name), join_pointer(pointer, "properties", name)
            resolved, _ = self._resolve(member)
            is_optional = optional or name not in required_names or "null" in _type_names(resolved)
            doc, location = _text(member, "description", resolved), DocumentLocation(pointer=member_pointer)
            yield SchemaField(member_path, name, self._label(member), is_optional, doc, location)
            yield from self.walk(member, member_pointer, member_path, inside)
        for step, below, steps in self._inner(schema):
            yield from self.walk(below, join_pointer(pointer, *steps), path + step, inside)
        for keyword in _COMBINING:
            for index, part in enumerate(schema[keyword] if isinstance(schema.get(keyword), list) else ()):
                part_pointer = join_pointer(pointer, keyword, index)
                yield from self.walk(part, part_pointer, path, inside, optional or keyword in _ALTERNATIVE)

    @staticmethod
    def _inner(schema: dict[str, Any]) -> Iterator[tuple[str, Any, tuple[object, ...]]]:
        """The step of a path, the schema and the steps of its pointer, of each schema of inner values."""
        items = schema.get("items")
        if isinstance(items, list):
            yield from (("[]", item, ("items", index)) for index, item in enumerate(items))
        else:
            yield "[]", items, ("items",)
        for pattern, member in _members(schema, "patternProperties"):
            yield "{}", member, ("patternProperties", pattern)
        yield "{}", schema.get("additionalProperties"), ("additionalProperties",)

    def _resolve(self, schema: Any, pointer: str = "") -> tuple[Any, str]:
        """The schema that a reference within the document leads to, with its pointer; other references stay."""
        for _ in range(MAX_DEPTH):
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str) or not reference.startswith("#"):
                return schema, pointer
            target = self._document
            for step in reference[1:].split("/")[1:]:
                step = step.replace("~1", "/").replace("~0", "~")
                target = target.get(step) if isinstance(target, dict) else None
            if target is None:
                return schema, pointer
            schema, pointer = target, reference[1:]
        return schema, pointer

    def _label(self, schema: Any) -> str:
        resolved, _ = self._resolve(schema)
        if not isinstance(resolved, dict):
            return "any"
        names = [name for name in _type_names(resolved) if name != "null"]
        if names == ["array"] and isinstance(resolved.get("items"), dict):
            return f"array<{self._label(resolved['items'])}>" if resolved["items"] is not resolved else "array"
        if not names:
            names = ["enum"] if "enum" in resolved else ["object"] if "properties" in resolved else ["any"]
        format = resolved.get("format")
        return " | ".join(names) + (f" ({format})" if isinstance(format, str) else "")


def _type_names(schema: Any) -> list[str]:
    declared = schema.get("type") if isinstance(schema, dict) else None
    return [declared] if isinstance(declared, str) else [str(name) for name in declared or ()]


def _members(schema: dict[str, Any], keyword: str) -> list[tuple[str, Any]]:
    members = schema.get(keyword)
    return list(members.items()) if isinstance(members, dict) else []


def _text(schema: Any, name: str, resolved: Any) -> str:
    for one in (schema, resolved):
        if isinstance(one, dict) and isinstance(one.get(name), str):
            return str(one[name])
    return ""

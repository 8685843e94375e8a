"""The fields of a JSON Structure document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import MAX_DEPTH, SchemaField, join_path
from annals.domain.formats.jsonschema import SchemaGraph
from annals.domain.values.json_pointer import join_pointer


def fields(parsed: SchemaGraph) -> Iterator[SchemaField]:
    """The properties of the root type at every depth; a document without a root type has none."""
    root = parsed.document
    if isinstance(root.get("$root"), str):
        root = {"type": {"$ref": root["$root"]}}
    return _JsonStructureFields(parsed.document).walk(root, "", "", ())


def document(parsed: SchemaGraph) -> Any:
    """The JSON value of the schema."""
    return parsed.document


class _JsonStructureFields:
    def __init__(self, document: Any) -> None:
        self._document = document

    def walk(self, schema: Any, pointer: str, path: str, open_types: tuple[int, ...]) -> Iterator[SchemaField]:
        """The fields below a type. pointer: to it. open_types: those that the path is inside of."""
        schema, pointer = self._resolve(schema, pointer)
        if not isinstance(schema, dict) or id(schema) in open_types or len(open_types) > MAX_DEPTH:
            return
        inside = (*open_types, id(schema))
        if isinstance(schema.get("$extends"), str):
            yield from self.walk({"type": {"$ref": schema["$extends"]}}, pointer, path, inside)
        required = schema.get("required")
        names = {str(name) for name in required} if isinstance(required, list) else set()
        for keyword in ("properties", "choices"):
            members = schema.get(keyword)
            for name, member in members.items() if isinstance(members, dict) else ():
                member_path, member_pointer = join_path(path, name), join_pointer(pointer, keyword, name)
                optional = name not in names or keyword == "choices" or "null" in _type_names(member)
                doc = member.get("description") if isinstance(member, dict) else None
                location = DocumentLocation(pointer=member_pointer)
                doc = doc if isinstance(doc, str) else ""
                yield SchemaField(member_path, name, _label(member), optional, doc, location)
                yield from self.walk(member, member_pointer, member_path, inside)
        for keyword, step in (("items", "[]"), ("values", "{}")):
            yield from self.walk(schema.get(keyword), join_pointer(pointer, keyword), path + step, inside)

    def _resolve(self, schema: Any, pointer: str) -> tuple[Any, str]:
        """The type that a type with a reference names, with its pointer."""
        for _ in range(MAX_DEPTH):
            type = schema.get("type") if isinstance(schema, dict) else None
            reference = type.get("$ref") if isinstance(type, dict) else None
            if not isinstance(reference, str):
                return schema, pointer
            target = self._document
            for step in reference.removeprefix("#").split("/")[1:]:
                target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            schema, pointer = target, reference.removeprefix("#")
        return schema, pointer


def _type_names(schema: Any) -> list[str]:
    declared = schema.get("type") if isinstance(schema, dict) else None
    names = declared if isinstance(declared, list) else [declared]
    return [
        str(name["$ref"]).rpartition("/")[2] if isinstance(name, dict) and "$ref" in name else str(name or "any")
        for name in names
    ]


def _label(schema: Any) -> str:
    names = [name for name in _type_names(schema) if name != "null"]
    for keyword in ("items", "values"):
        if isinstance(schema, dict) and isinstance(schema.get(keyword), dict) and len(names) == 1:
            return f"{names[0]}<{_label(schema[keyword])}>"
    return " | ".join(names)

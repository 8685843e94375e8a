"""The fields of a JSON Structure document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annals.domain.formats.fields import MAX_DEPTH, SchemaField, join_path
from annals.domain.formats.jsonschema import SchemaGraph


def fields(parsed: SchemaGraph) -> Iterator[SchemaField]:
    """The properties of the root type at every depth; a document without a root type has none."""
    document = parsed.document
    root = {"type": {"$ref": document["$root"]}} if isinstance(document.get("$root"), str) else document
    return _JsonStructureFields(document).walk(root, "", ())


class _JsonStructureFields:
    def __init__(self, document: Any) -> None:
        self._document = document

    def walk(self, schema: Any, path: str, open_types: tuple[int, ...]) -> Iterator[SchemaField]:
        """The fields below a type. open_types: those that the path is inside of."""
        schema = self._resolve(schema)
        if not isinstance(schema, dict) or id(schema) in open_types or len(open_types) > MAX_DEPTH:
            return
        inside = (*open_types, id(schema))
        if isinstance(schema.get("$extends"), str):
            yield from self.walk({"type": {"$ref": schema["$extends"]}}, path, inside)
        required = schema.get("required")
        names = {str(name) for name in required} if isinstance(required, list) else set()
        for keyword in ("properties", "choices"):
            members = schema.get(keyword)
            for name, member in members.items() if isinstance(members, dict) else ():
                member_path = join_path(path, name)
                optional = name not in names or keyword == "choices" or "null" in _type_names(member)
                doc = member.get("description") if isinstance(member, dict) else None
                yield SchemaField(member_path, name, _label(member), optional, doc if isinstance(doc, str) else "")
                yield from self.walk(member, member_path, inside)
        for keyword, step in (("items", "[]"), ("values", "{}")):
            yield from self.walk(schema.get(keyword), path + step, inside)

    def _resolve(self, schema: Any) -> Any:
        """The type that a type with a reference names."""
        for _ in range(MAX_DEPTH):
            type = schema.get("type") if isinstance(schema, dict) else None
            reference = type.get("$ref") if isinstance(type, dict) else None
            if not isinstance(reference, str):
                return schema
            target = self._document
            for step in reference.removeprefix("#").split("/")[1:]:
                target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            schema = target
        return schema


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

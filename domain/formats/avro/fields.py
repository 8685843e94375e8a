"""The fields of an Avro schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from annals.domain.formats.avro.schema import AvroSchema, AvroType, TypeReference
from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import MAX_DEPTH, SchemaField, join_path
from annals.domain.values import json_text


def fields(parsed: AvroSchema) -> Iterator[SchemaField]:
    """The fields of all records that the root reaches; `optional` means that a field's union contains null."""
    return _AvroFields(parsed).walk(parsed.root, "", ())


def document(parsed: AvroSchema) -> Any:
    """The JSON value of the schema."""
    return json_text.loads(parsed.source)


class _AvroFields:
    """One walk through a schema. The parsed types have no descriptions, so these are read from the document."""

    def __init__(self, schema: AvroSchema) -> None:
        self._types = schema.types
        self._document = json_text.loads(schema.source)

    def walk(self, reference: TypeReference, path: str, open_types: tuple[int, ...]) -> Iterator[SchemaField]:
        """The fields below a use of a type. open_types: records that the path is inside of."""
        type = self._types[reference.type]
        if len(open_types) > MAX_DEPTH or (type.kind == "record" and reference.type in open_types):
            return
        inside = (*open_types, reference.type)
        match type.kind:
            case "record":
                for field in type.fields:
                    field_path = join_path(path, field.name)
                    doc = self._member(field.pointer, "doc")
                    label, optional = self._label(field.type), self._is_nullable(field.type)
                    location = DocumentLocation(pointer=field.pointer)
                    yield SchemaField(field_path, field.name, label, optional, doc, location)
                    yield from self.walk(field.type, field_path, inside)
            case "array" | "map":
                step = "[]" if type.kind == "array" else "{}"
                yield from self.walk(type.parts[0], path + step, inside)
            case "union":
                for part in type.parts:
                    yield from self.walk(part, path, inside)

    def _label(self, reference: TypeReference) -> str:
        type = self._types[reference.type]
        logical = self._member(reference.pointer, "logicalType")
        match type.kind:
            case "array" | "map":
                return f"{type.kind}<{self._label(type.parts[0])}>"
            case "union":
                return " | ".join(self._label(part) for part in type.parts if self._types[part.type].kind != "null")
        return f"{type.label} ({logical})" if logical else type.label

    def _is_nullable(self, reference: TypeReference) -> bool:
        type = self._types[reference.type]
        return type.kind == "null" or any(self._is_null(self._types[part.type]) for part in _branches(type))

    @staticmethod
    def _is_null(type: AvroType) -> bool:
        return type.kind == "null"

    def _member(self, pointer: str, name: str) -> str:
        value: Any = self._document
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if isinstance(value, list) else value[step]
        text = value.get(name) if isinstance(value, dict) else None
        return text if isinstance(text, str) else ""


def _branches(type: AvroType) -> tuple[TypeReference, ...]:
    return type.parts if type.kind == "union" else ()

"""The Parsing Canonical Form of a schema.

Spec: Avro, "Parsing Canonical Form for Schemas".
"""

from __future__ import annotations

from typing import Any

from annals.domain.formats.avro.schema import PRIMITIVE_TYPES, AvroSchema, AvroType
from annals.domain.values import json_text


def canonical_json(schema: AvroSchema) -> Any:
    """The schema as JSON, reduced to what determines the written data."""
    return _CanonicalWriter(schema.types, writes_empty_namespace=True).write_type(schema.root.type)


def parsing_canonical_form(schema: AvroSchema) -> bytes:
    """The Parsing Canonical Form."""
    return json_text.dumps(_CanonicalWriter(schema.types, writes_empty_namespace=False).write_type(schema.root.type))


class _CanonicalWriter:
    """One pass over a schema in document order, because every type is written in full at its first use.

    writes_empty_namespace: write an empty namespace for names without one. The canonical form omits it, and so loses
    the empty namespace inside of a type with a namespace.
    """

    def __init__(self, types: tuple[AvroType, ...], writes_empty_namespace: bool) -> None:
        self._types = types
        self._writes_empty_namespace = writes_empty_namespace
        self._written_names: set[str] = set()

    def write_type(self, index: int) -> Any:
        avro_type = self._types[index]
        if avro_type.kind in PRIMITIVE_TYPES:
            return avro_type.kind
        if avro_type.kind == "union":
            return [self.write_type(part.type) for part in avro_type.parts]
        if avro_type.kind in ("array", "map"):
            return {
                "type": avro_type.kind,
                "items" if avro_type.kind == "array" else "values": self.write_type(avro_type.parts[0].type),
            }
        if avro_type.name in self._written_names:
            return avro_type.name
        self._written_names.add(avro_type.name)
        namespace_member = {"namespace": ""} if self._writes_empty_namespace and "." not in avro_type.name else {}
        return {"name": avro_type.name, "type": avro_type.kind} | namespace_member | self._kind_members(avro_type)

    def _kind_members(self, avro_type: AvroType) -> dict[str, Any]:
        if avro_type.kind == "enum":
            return {"symbols": list(avro_type.symbols)}
        if avro_type.kind == "fixed":
            return {"size": avro_type.size}
        return {
            "fields": [{"name": field.name, "type": self.write_type(field.type.type)} for field in avro_type.fields]
        }

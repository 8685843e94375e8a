"""The Parsing Canonical Form of a schema.

Spec: Avro, "Parsing Canonical Form for Schemas".
"""

from __future__ import annotations

from typing import Any

from domain.formats.avro.schema import PRIMITIVE_TYPES, AvroSchema, AvroType
from domain.values import json_text


def canonical_json(schema: AvroSchema) -> Any:
    """The schema as JSON, reduced to what determines the written data."""
    return _CanonicalWriter(schema.types, spaced=True).use(schema.root.type)


def parsing_canonical_form(schema: AvroSchema) -> bytes:
    """The Parsing Canonical Form."""
    return json_text.dumps(_CanonicalWriter(schema.types, spaced=False).use(schema.root.type))


class _CanonicalWriter:
    """One pass over a schema in document order, because every type is written in full at its first use.

    spaced: write an empty namespace for names without one. The canonical form omits it, and so loses the empty
    namespace inside of a type with a namespace.
    """

    def __init__(self, types: tuple[AvroType, ...], spaced: bool) -> None:
        self._types = types
        self._spaced = spaced
        self._written: set[str] = set()

    def use(self, index: int) -> Any:
        avro_type = self._types[index]
        if avro_type.kind in PRIMITIVE_TYPES:
            return avro_type.kind
        if avro_type.kind == "union":
            return [self.use(part.type) for part in avro_type.parts]
        if avro_type.kind in ("array", "map"):
            return {
                "type": avro_type.kind,
                "items" if avro_type.kind == "array" else "values": self.use(avro_type.parts[0].type),
            }
        if avro_type.name in self._written:
            return avro_type.name
        self._written.add(avro_type.name)
        namespace_member = {"namespace": ""} if self._spaced and "." not in avro_type.name else {}
        return {"name": avro_type.name, "type": avro_type.kind} | namespace_member | self._held(avro_type)

    def _held(self, avro_type: AvroType) -> dict[str, Any]:
        if avro_type.kind == "enum":
            return {"symbols": list(avro_type.symbols)}
        if avro_type.kind == "fixed":
            return {"size": avro_type.size}
        return {"fields": [{"name": field.name, "type": self.use(field.type.type)} for field in avro_type.fields]}

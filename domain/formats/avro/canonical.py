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
        found = self._types[index]
        if found.kind in PRIMITIVE_TYPES:
            return found.kind
        if found.kind == "union":
            return [self.use(part.type) for part in found.parts]
        if found.kind in ("array", "map"):
            return {"type": found.kind, "items" if found.kind == "array" else "values": self.use(found.parts[0].type)}
        if found.name in self._written:
            return found.name
        self._written.add(found.name)
        space = {"namespace": ""} if self._spaced and "." not in found.name else {}
        return {"name": found.name, "type": found.kind} | space | self._held(found)

    def _held(self, found: AvroType) -> dict[str, Any]:
        if found.kind == "enum":
            return {"symbols": list(found.symbols)}
        if found.kind == "fixed":
            return {"size": found.size}
        return {"fields": [{"name": field.name, "type": self.use(field.type.type)} for field in found.fields]}

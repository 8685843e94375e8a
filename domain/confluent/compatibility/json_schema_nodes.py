"""A JSON Schema in the shape in which Confluent's registry compares it: each schema has exactly one kind.

A schema of several kinds is an `allOf` of them, and a list of types an `anyOf`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

#: Finds the schema to which a `$ref` leads, by the name of its text and the reference.
ResolveRef = Callable[[str, str], tuple[str, Any] | None]

_OBJECT_KEYWORDS: Final = (
    *("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    *("dependencies", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "propertyNames"),
)
_ARRAY_KEYWORDS: Final = (
    *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    *("minContains", "maxContains", "unevaluatedItems"),
)
_STRING_KEYWORDS: Final = ("minLength", "maxLength", "pattern")
_NUMBER_KEYWORDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYWORDS_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "object": _OBJECT_KEYWORDS,
    "array": _ARRAY_KEYWORDS,
    "string": _STRING_KEYWORDS,
    "number": _NUMBER_KEYWORDS,
}
_KINDS_OF_TYPE: Final = {"integer": "number"}
COMBINATIONS: Final = ("allOf", "anyOf", "oneOf")
_MAX_REFS: Final = 64


class JsonNode:
    """One schema of a text. base: the name of the text. kind: see `_read_kind`."""

    __slots__ = ("_resolve", "base", "criterion", "kind", "parts", "schema")

    def __init__(self, schema: Any, base: str, resolve: ResolveRef, kind: str | None = None) -> None:
        self._resolve = resolve
        self.schema, self.base = self._follow_refs(schema, base)
        self.criterion = ""
        self.parts: list[JsonNode] = []
        self.kind = kind if kind is not None else self._read_kind()

    @property
    def key(self) -> tuple[int, str]:
        """The identity of the node within its texts."""
        return id(self.schema), self.kind

    def get(self, keyword: str) -> Any:
        return self.schema.get(keyword) if isinstance(self.schema, dict) else None

    def child(self, schema: Any) -> JsonNode | None:
        """A schema below this one; None where there is none."""
        return JsonNode(schema, self.base, self._resolve) if isinstance(schema, dict | bool) else None

    def children(self, keyword: str) -> dict[str, JsonNode]:
        """The schemas in a map of schemas."""
        members = self.get(keyword)
        entries = members.items() if isinstance(members, dict) else ()
        return {name: child for name, schema in entries if (child := self.child(schema)) is not None}

    @property
    def requires_integer(self) -> bool:
        return bool(self.get("type") == "integer")

    def _read_kind(self) -> str:
        """`true`, `false`, `empty`, a type, `enum`, `const`, `not`, or `combined` with its criterion and parts."""
        if isinstance(self.schema, bool):
            return "true" if self.schema else "false"
        types = self.schema.get("type")
        part_kinds = [] if isinstance(types, list) else [*self._typed_kinds(types)]
        parts = [self._part(kind) for kind in (*part_kinds, *self._other_kinds())]
        if isinstance(types, list):
            union = [
                JsonNode({**self.schema, "type": type}, self.base, self._resolve, _kind_of(type)) for type in types
            ]
            parts.insert(0, self._combined("anyOf", union))
        for criterion in COMBINATIONS:
            schemas = self.schema.get(criterion)
            if isinstance(schemas, list):
                children = [child for schema in schemas if (child := self.child(schema)) is not None]
                parts.append(self._combined(criterion, children))
        if not parts:
            return "empty"
        if len(parts) == 1:
            self.criterion, self.parts = parts[0].criterion, parts[0].parts
            return parts[0].kind
        self.criterion, self.parts = "allOf", parts
        return "combined"

    def _typed_kinds(self, type: Any) -> tuple[str, ...]:
        if isinstance(type, str):
            return (_kind_of(type),)
        return tuple(
            kind for kind, keywords in _KEYWORDS_OF_KIND.items() if any(keyword in self.schema for keyword in keywords)
        )

    def _other_kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in ("enum", "const", "not") if kind in self.schema)

    def _part(self, kind: str) -> JsonNode:
        return JsonNode(self.schema, self.base, self._resolve, kind)

    def _combined(self, criterion: str, parts: list[JsonNode]) -> JsonNode:
        node = JsonNode(self.schema, self.base, self._resolve, "combined")
        node.criterion, node.parts = criterion, parts
        return node

    def _follow_refs(self, schema: Any, base: str) -> tuple[Any, str]:
        for _ in range(_MAX_REFS):
            ref = schema.get("$ref") if isinstance(schema, dict) else None
            target = self._resolve(base, ref) if isinstance(ref, str) else None
            if target is None:
                break
            base, schema = target
        return schema, base


def _kind_of(type: str) -> str:
    return _KINDS_OF_TYPE.get(type, type)

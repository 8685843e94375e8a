"""A JSON Schema in the shape in which Confluent's registry compares it: each schema has exactly one kind.

A schema of several kinds is an `allOf` of them, and a list of types an `anyOf`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

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
#: Keywords that restrict values; others only describe a schema or hold further ones.
_ASSERTIONS: Final = frozenset(
    ("type", "enum", "const", "not", *COMBINATIONS, *(name for names in _KEYWORDS_OF_KIND.values() for name in names))
)
_MAX_REFS: Final = 64


class RefResolver(Protocol):
    """The `$ref`s of a text and of those that it refers to."""

    def target(self, schema: Any) -> Any:
        """The schema to which the `$ref` of a schema leads; None where it has none, or one that leads nowhere."""

    def applies_siblings(self, schema: Any) -> bool:
        """Whether the keywords next to the `$ref` of a schema apply too."""


class JsonNode:
    """One schema of a text. kind: see `_read_kind`. around: the identities of the schemas that it is a part of.

    has_default: whether it, or the schema to which it refers, has a default.
    """

    __slots__ = ("_around", "_label", "_references", "_target", "criterion", "has_default", "kind", "parts", "schema")

    def __init__(
        self, schema: Any, references: RefResolver, kind: str | None = None, around: frozenset[int] = frozenset()
    ) -> None:
        self._references, self._around, self._label = references, around, ""
        self.schema, self._target, self.has_default = schema, None, False
        self.criterion = ""
        self.parts: list[JsonNode] = []
        if kind is None:
            self._follow_refs()
        self.has_default |= isinstance(self.schema, dict) and "default" in self.schema
        self.kind = kind if kind is not None else self._read_kind()

    @property
    def key(self) -> tuple[int, str, str]:
        """The identity of the node within its texts."""
        return id(self.schema), self.kind, self._label

    def get(self, keyword: str) -> Any:
        return self.schema.get(keyword) if isinstance(self.schema, dict) else None

    def child(self, schema: Any) -> JsonNode | None:
        """A schema below this one; None where there is none."""
        return JsonNode(schema, self._references) if isinstance(schema, dict | bool) else None

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
        if id(self.schema) in self._around:  # only `_in_place` makes such a node, which it leaves out
            return "empty"
        types = self.schema.get("type")
        part_kinds = [] if isinstance(types, list) else [*self._typed_kinds(types)]
        parts = [self._part(kind) for kind in (*part_kinds, *self._other_kinds())]
        if isinstance(types, list):
            union = [JsonNode({**self.schema, "type": type}, self._references, _kind_of(type)) for type in types]
            parts.insert(0, self._combined("anyOf", union, "type"))
        for criterion in COMBINATIONS:
            schemas = self.schema.get(criterion)
            if isinstance(schemas, list):
                parts.append(self._combined(criterion, self._in_place(schemas), criterion))
        if self._target is not None:
            targets = self._in_place([self._target])
            self.has_default |= any(target.has_default for target in targets)
            parts += targets
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
        return JsonNode(self.schema, self._references, kind)

    def _in_place(self, schemas: list[Any]) -> list[JsonNode]:
        """Schemas that apply to the same value as this one, without any that this one is a part of."""
        around = self._around | {id(self.schema)}
        nodes = (
            JsonNode(schema, self._references, around=around) for schema in schemas if isinstance(schema, dict | bool)
        )
        return [node for node in nodes if id(node.schema) not in around]

    def _combined(self, criterion: str, parts: list[JsonNode], label: str) -> JsonNode:
        """A part that is a combination. label: tells it from others of the same schema."""
        node = JsonNode(self.schema, self._references, "combined")
        node.criterion, node.parts, node._label = criterion, parts, label
        return node

    def _follow_refs(self) -> None:
        """Puts the target of `$ref` in the place of the schema, or next to it where other keywords apply too."""
        for _ in range(_MAX_REFS):
            target = self._references.target(self.schema)
            if target is None:
                return
            if self._references.applies_siblings(self.schema):
                self.has_default |= "default" in self.schema
                if has_assertions(self.schema):
                    self._target = target
                    return
            self.schema = target


def has_assertions(schema: Mapping[str, Any]) -> bool:
    """Whether a schema restricts values by keywords of its own."""
    return not _ASSERTIONS.isdisjoint(schema)


def _kind_of(type: str) -> str:
    return _KINDS_OF_TYPE.get(type, type)

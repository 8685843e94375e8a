"""A JSON Structure document as a graph of the same nodes as JSON Schema, for comparison."""

from __future__ import annotations

from typing import Any, Final

from annals.domain.formats.contract import DocumentLocation, InvalidDocument
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.formats.jsonschema.graph import refuse_cycles
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.values import is_pattern
from annals.domain.formats.jsonstructure import types
from annals.domain.values.json_pointer import join_pointer
from annals.domain.values.json_text import dumps

_NOT_FOUND: Final = object()


def build_graph(document: dict[str, Any]) -> tuple[SchemaNode, int]:
    """The node of the root type of a valid document, and the number of nodes. Raises: InvalidDocument."""
    builder = _TypeGraphBuilder(document)
    root = builder.reference("", document, document["$root"]) if "$root" in document else builder.node("", document)
    builder.run()
    nodes = [*builder.nodes.values(), *builder.extra_nodes]
    refuse_cycles(nodes)
    for node in nodes:
        for pattern in node.patterns:
            if not is_pattern(pattern):
                raise InvalidDocument(
                    f'"{pattern[:100]}" is not a regular expression of ECMA-262', node.location("pattern")
                )
        node.seal()
    return root, len(nodes)


class _TypeGraphBuilder:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.nodes: dict[tuple[object, ...], SchemaNode] = {}
        #: Nodes for parts of the document that are not schemas themselves.
        self.extra_nodes: list[SchemaNode] = []
        self.waiting: list[tuple[SchemaNode, dict[str, str]]] = []

    def node(self, pointer: str, raw: Any, selector_values: dict[str, str] | None = None) -> SchemaNode:
        """The node at a pointer.

        selector_values: a property that an inline union adds to its alternative, with its value.
        """
        name = (pointer, *(selector_values or {}).items())
        if name not in self.nodes:
            self.nodes[name] = node = SchemaNode(pointer, raw)
            self.waiting.append((node, selector_values or {}))
        return self.nodes[name]

    def run(self) -> None:
        while self.waiting:
            node, selector_values = self.waiting.pop()
            if isinstance(node.raw, bool):
                node.never = not node.raw
            elif isinstance(node.raw, str):
                types.fill_primitive(node, node.raw)
            elif isinstance(node.raw, dict):
                self._fill(node, selector_values)

    def reference(
        self, pointer: str, raw: Any, target: Any, selector_values: dict[str, str] | None = None
    ) -> SchemaNode:
        """The node that a reference leads to. Raises: InvalidDocument."""
        definition = self._find_definition(target)
        if not isinstance(definition, dict):
            location = DocumentLocation(pointer=pointer, fragment=json_fragment(raw))
            raise InvalidDocument(f'the reference "{str(target)[:100]}" leads to no type in the document', location)
        return self.node(str(target).removeprefix("#"), definition, selector_values)

    def _find_definition(self, target: Any) -> Any:
        if not isinstance(target, str) or not target.startswith("#/"):
            return _NOT_FOUND
        value: Any = self.document
        for step in target[2:].split("/"):
            if not isinstance(value, dict):
                return _NOT_FOUND
            value = value.get(step.replace("~1", "/").replace("~0", "~"), _NOT_FOUND)
        return value

    def _fill(self, node: SchemaNode, selector_values: dict[str, str]) -> None:
        raw = node.raw

        def subschema(*steps: str | int) -> SchemaNode:
            value = raw
            for step in steps:
                value = value[step]
            return self.node(join_pointer(node.pointer, *steps), value)

        kind = raw.get("type")
        if isinstance(kind, dict):
            self._fill_reference(node, kind, selector_values)
        elif isinstance(kind, list):
            node.any_of = tuple(self._union_member(node, index, alternative) for index, alternative in enumerate(kind))
        elif isinstance(kind, str):
            types.fill_primitive(node, kind)
            self._fill_compound(node, kind, subschema, selector_values)
        types.fill_value_keywords(node, raw)
        types.fill_combinations(node, raw, subschema)
        if kind == "tuple":
            # A tuple maps positions to property names, so different names make a different tuple.
            node.others |= {("tuple", dumps(raw.get("tuple")).decode())}
            node.min_items = len(node.prefix)

    def _fill_reference(self, node: SchemaNode, kind: dict[str, Any], selector_values: dict[str, str]) -> None:
        pointer = join_pointer(node.pointer, "type")
        node.ref = (
            self.reference(pointer, kind, kind["$ref"], selector_values)
            if "$ref" in kind
            else self.node(pointer, kind, selector_values)
        )

    def _union_member(self, node: SchemaNode, index: int, alternative: Any) -> SchemaNode:
        """The node of one type of a union."""
        pointer = join_pointer(node.pointer, "type", index)
        if isinstance(alternative, dict) and "$ref" in alternative:
            return self.reference(pointer, alternative, alternative["$ref"])
        return self.node(pointer, alternative)

    def _fill_compound(
        self, node: SchemaNode, kind: str, subschema: types.NodeFactory, selector_values: dict[str, str]
    ) -> None:
        raw = node.raw
        match kind:
            case "object":
                self._fill_object(node, subschema, selector_values)
            case "map":
                node.kinds, node.additional = frozenset({"object"}), subschema("values") if "values" in raw else None
            case "array" | "set":
                node.kinds, node.items = frozenset({"array"}), subschema("items") if "items" in raw else None
                node.unique = kind == "set"
            case "tuple":
                properties = self._properties(node)
                node.kinds = frozenset({"array"})
                node.prefix = tuple(properties[name] for name in raw.get("tuple", []) if name in properties)
                node.items = self._add_extra(SchemaNode(node.pointer, False, never=True))
            case "choice":
                self._fill_choice(node, subschema)

    def _fill_object(self, node: SchemaNode, subschema: types.NodeFactory, selector_values: dict[str, str]) -> None:
        raw = node.raw
        node.kinds, node.properties = frozenset({"object"}), self._properties(node)
        for base in self._bases(raw):
            node.required |= {name for name in base[1].get("required", []) if isinstance(name, str)}
        for name, value in selector_values.items():
            selector_node = SchemaNode(
                node.pointer, value, kinds=frozenset({"string"}), allowed={("string", value): value}
            )
            node.properties[name] = self._add_extra(selector_node)
            node.required |= {name}
        if raw.get("abstract") is not True and isinstance(raw.get("additionalProperties"), (dict, bool)):
            node.additional = subschema("additionalProperties")
        self.extra_nodes.extend(types.fill_required(node, raw, ()))

    def _properties(self, node: SchemaNode) -> dict[str, SchemaNode]:
        """The properties of a type and of all types that it extends; the nearest definition wins."""
        properties: dict[str, SchemaNode] = {}
        for pointer, raw in (*reversed(self._bases(node.raw)), (node.pointer, node.raw)):
            for name, property_schema in raw.get("properties", {}).items():
                properties[name] = self.node(join_pointer(pointer, "properties", name), property_schema)
        return properties

    def _bases(self, raw: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The types that a type extends, nearest first, each once."""
        bases: dict[str, dict[str, Any]] = {}
        pending = _extended_targets(raw)
        while pending:
            target = pending.pop(0)
            base = self._find_definition(target)
            if isinstance(base, dict) and target not in bases:
                bases[target] = base
                pending = [*_extended_targets(base), *pending]
        return [(target.removeprefix("#"), base) for target, base in bases.items()]

    def _fill_choice(self, node: SchemaNode, subschema: types.NodeFactory) -> None:
        raw = node.raw
        choices = raw.get("choices", {})
        selector = raw.get("selector")
        if "$extends" in raw and isinstance(selector, str):
            node.one_of = tuple(
                self.node(join_pointer(node.pointer, "choices", name), choices[name], {selector: name})
                for name in choices
            )
            return
        node.kinds = frozenset({"object"})
        alternatives = [types.tagged_alternative(node, name, subschema("choices", name)) for name in choices]
        self.extra_nodes += [
            *alternatives,
            *(alternative.additional for alternative in alternatives if alternative.additional is not None),
        ]
        node.one_of = tuple(alternatives)

    def _add_extra(self, node: SchemaNode) -> SchemaNode:
        self.extra_nodes.append(node)
        return node


def _extended_targets(raw: dict[str, Any]) -> list[str]:
    extended = raw.get("$extends", [])
    return [target for target in (extended if isinstance(extended, list) else [extended]) if isinstance(target, str)]

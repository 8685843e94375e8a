"""A JSON Schema document as a graph of nodes, with its references resolved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urljoin

from referencing import Registry
from referencing.exceptions import Unresolvable

from annals.domain.formats.contract import DocumentLocation, InvalidDocument
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.formats.jsonschema import drafts
from annals.domain.formats.jsonschema.drafts import JsonSchemaDraft
from annals.domain.formats.jsonschema.keywords import SubschemaFactory, fill_node
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.values import is_pattern
from annals.domain.values.json_pointer import join_pointer

#: Errors besides `Unresolvable` that the resolver raises for invalid references.
_LIBRARY_ERRORS: Final = (ValueError, TypeError, LookupError, AttributeError)


def build_graph(document: Any, draft: JsonSchemaDraft, text: bytes) -> tuple[SchemaNode, int]:
    """The root node of a document that is valid for its meta-schema, and the number of nodes.

    text: the bytes of the document. Raises: InvalidDocument for unresolvable references and invalid patterns. Cost:
    linear.
    """
    builder = NodeBuilder(document, draft, text)
    return builder.complete("", document), len(builder.nodes)


@dataclass(slots=True)
class _PendingNode:
    node: SchemaNode
    resolver: Any


class NodeBuilder:
    """Builds the nodes of the schemas in a document. text: its bytes; see `build_graph`."""

    def __init__(self, document: Any, draft: JsonSchemaDraft, text: bytes) -> None:
        self.draft, self.text = draft, text
        self.nodes: dict[str, SchemaNode] = {}
        self.waiting: list[_PendingNode] = []
        self.references: list[_PendingNode] = []
        self.places: dict[int, tuple[str, Any]] | None = None
        self.anchor_count: int | None = None
        self.document = document
        self._sealed = 0
        self._known_outlines: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        resource = draft.specification.create_resource(document)
        try:
            registry: Registry[Any] = Registry()
            # Crawled once here; otherwise every reference would crawl the document again.
            indexed_registry = registry.with_resource(resource.id() or "", resource).crawl()
            self.resolver = indexed_registry.resolver(base_uri=resource.id() or "")
        except _LIBRARY_ERRORS:
            raise InvalidDocument("an identifier in the document is not a URI", DocumentLocation(pointer="")) from None

    def complete(self, pointer: str, raw: Any) -> SchemaNode:
        """The node at a pointer, with all nodes that it refers to. Raises: see `build_graph`."""
        root = self.node(pointer, raw, self.resolver)
        self.run()
        new_nodes = list(self.nodes.values())[self._sealed :]
        refuse_cycles(new_nodes)
        for node in new_nodes:
            node.seal(self._known_outlines)
        self._sealed = len(self.nodes)
        return root

    def node(self, pointer: str, raw: Any, resolver: Any) -> SchemaNode:
        """The node at a pointer; `run` fills it later."""
        if pointer not in self.nodes:
            self.nodes[pointer] = node = SchemaNode(pointer, raw)
            self.waiting.append(_PendingNode(node, resolver))
        return self.nodes[pointer]

    def run(self) -> None:
        """Fills all nodes. Nodes that only references lead to are last: the meta-schema has not checked them."""
        while self.waiting or self.references:
            while self.waiting:
                self._fill(self.waiting.pop())
            if self.references:
                self._link_references(self.references.pop())

    def _fill(self, pending: _PendingNode) -> None:
        node, raw = pending.node, pending.node.raw
        if isinstance(raw, bool):
            node.never = not raw
            return
        resolver = pending.resolver
        if node.pointer:
            try:
                resolver = resolver.in_subresource(self.draft.specification.create_resource(raw))
            except _LIBRARY_ERRORS:
                raise InvalidDocument("the identifier is not a URI", _node_location(node)) from None

        def subschema(*steps: str | int) -> SchemaNode:
            value = raw
            for step in steps:
                value = value[step]
            return self.node(join_pointer(node.pointer, *steps), value, resolver)

        fill_node(node, self.draft.number, SubschemaFactory(subschema))
        self._patterns(node)
        if node.has_keyword("$ref", "$dynamicRef", "$recursiveRef"):
            self.references.append(_PendingNode(node, resolver))

    def _patterns(self, node: SchemaNode) -> None:
        for pattern in (*node.patterns, *node.by_pattern):
            if not is_pattern(pattern):
                location = node.location("pattern" if pattern in node.patterns else "patternProperties")
                raise InvalidDocument(f'"{pattern[:100]}" is not a regular expression of ECMA-262', location)

    def _link_references(self, pending: _PendingNode) -> None:
        node = pending.node
        candidates = [
            self._find_target(node, pending.resolver, keyword)
            for keyword in _reference_keywords(node, self.draft.number)
        ]
        targets = [target for target in candidates if target is not None]
        node.ref = targets[0] if targets else None
        node.all_of = (*node.all_of, *targets[1:])

    def _find_target(self, node: SchemaNode, resolver: Any, keyword: str) -> SchemaNode | None:
        """The target of a reference; None where it is outside of the document, which `node.remote` then records."""
        reference = node.raw[keyword]
        location = node.location(keyword)
        if self._is_dynamic(keyword):
            # The reference equals only itself in the same document, which is the safe answer.
            node.remote = f"{reference} at {node.pointer} in sha256:{sha256(self.text).hexdigest()}"
            return None
        try:
            resolved = resolver.lookup(reference)
        except Unresolvable as error:
            if type(error) is not Unresolvable:
                raise InvalidDocument(
                    f'the reference "{reference[:100]}" leads to nothing in the document', location
                ) from None
            node.remote = urljoin(resolver._base_uri, reference)
            return None
        except _LIBRARY_ERRORS:
            raise InvalidDocument(
                f'the reference "{reference[:100]}" leads to nothing in the document', location
            ) from None
        target = resolved.contents
        if not isinstance(target, bool) and not (isinstance(target, dict) and id(target) in self._places()):
            raise InvalidDocument(f'the reference "{reference[:100]}" does not lead to a schema', location)
        if isinstance(target, bool):
            # Equal booleans are one object in Python, so the pointer of the reference identifies this node.
            return self.node(join_pointer(node.pointer, keyword), target, resolver)
        pointer, _ = self._places()[id(target)]
        if pointer not in self.nodes:
            drafts.check_schema(self.draft, target, len(self.text), pointer)
        return self.node(pointer, target, resolved.resolver)

    def _is_dynamic(self, keyword: str) -> bool:
        """Whether a keyword's target depends on the evaluation path; with one anchor in the document it does not."""
        if keyword == "$ref":
            return False
        if self.anchor_count is None:
            self.anchor_count = sum(_has_dynamic_anchor(value) for value in self._places().values())
        return self.anchor_count > 1

    def _places(self) -> dict[int, tuple[str, Any]]:
        if self.places is None:
            self.places = dict(_objects_by_id(self.document))
        return self.places


def _reference_keywords(node: SchemaNode, number: int) -> list[str]:
    known = ["$ref"]
    if number == 2019:
        known.append("$recursiveRef")
    if number == 2020:
        known.append("$dynamicRef")
    return [keyword for keyword in known if keyword in node.raw]


def _objects_by_id(document: Any) -> Iterator[tuple[int, tuple[str, Any]]]:
    """Every object of a document by its identity, with its pointer."""
    pending = [("", document)]
    while pending:
        pointer, value = pending.pop()
        if isinstance(value, dict):
            yield id(value), (pointer, value)
            pending.extend((join_pointer(pointer, name), item) for name, item in value.items())
        elif isinstance(value, list):
            pending.extend((join_pointer(pointer, index), item) for index, item in enumerate(value))


def _has_dynamic_anchor(pointed_value: tuple[str, Any]) -> bool:
    return "$dynamicAnchor" in pointed_value[1] or pointed_value[1].get("$recursiveAnchor") is True


def _node_location(node: SchemaNode) -> DocumentLocation:
    return DocumentLocation(pointer=node.pointer, fragment=json_fragment(node.raw))


def refuse_cycles(nodes: Iterable[SchemaNode]) -> None:
    """Refuses a schema that applies to the same value again, which never ends. Raises: InvalidDocument."""
    finished: set[int] = set()
    for start in nodes:
        if id(start) in finished:
            continue
        path = {id(start)}
        stack = [(start, start.in_place_subschemas())]
        while stack:
            node, subschemas = stack[-1]
            child = next(subschemas, None)
            if child is None:
                stack.pop()
                path.discard(id(node))
                finished.add(id(node))
            elif id(child) in path:
                raise InvalidDocument(
                    "the schema refers to itself without looking into the value", node.location("$ref", "type")
                )
            elif id(child) not in finished:
                path.add(id(child))
                stack.append((child, child.in_place_subschemas()))

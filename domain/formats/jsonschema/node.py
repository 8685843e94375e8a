"""One schema of a document, in the same terms for every draft of JSON Schema."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import MISSING, dataclass, field, fields
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.values.json_pointer import join_pointer

#: A bound, and whether it is exclusive.
NumberBound = tuple[Decimal, bool]


#: An empty dict that all nodes share; it must not be modified.
NO_NODES: Final[dict[Any, Any]] = {}


@dataclass(slots=True, eq=False)
class SchemaNode:
    """A schema; missing fields restrict nothing. Nodes are filled once, while their graph is built.

    pointer, raw: the location in the document, and the JSON value there. kinds: allowed kinds of values; None: all.
    allowed: values of enum and const, by equality key. marks: keywords that readers rely on, but that cannot be
    compared. remote: a reference to outside of the document, as an absolute URI.
    """

    pointer: str
    raw: Any
    never: bool = False
    remote: str | None = None
    kinds: frozenset[str] | None = None
    allowed: dict[Hashable, Any] | None = None
    lower: NumberBound | None = None
    upper: NumberBound | None = None
    multiples: frozenset[Decimal] = frozenset()
    min_length: int = 0
    max_length: int | None = None
    patterns: frozenset[str] = frozenset()
    marks: frozenset[tuple[str, str]] = frozenset()
    #: Maximum digits of a decimal number in a text, and of those after its point; None: unlimited.
    precision: int | None = None
    scale: int | None = None
    min_items: int = 0
    max_items: int | None = None
    unique: bool = False
    min_contains: int = 1
    max_contains: int | None = None
    min_properties: int = 0
    max_properties: int | None = None
    required: frozenset[str] = frozenset()
    #: Further keywords with the text of their values; they are compared for equality only.
    others: frozenset[tuple[str, str]] = frozenset()
    dependent_required: dict[str, frozenset[str]] = field(default_factory=lambda: NO_NODES)
    ref: SchemaNode | None = None
    items: SchemaNode | None = None
    contains: SchemaNode | None = None
    unevaluated_items: SchemaNode | None = None
    additional: SchemaNode | None = None
    names: SchemaNode | None = None
    unevaluated: SchemaNode | None = None
    negated: SchemaNode | None = None
    condition: SchemaNode | None = None
    then: SchemaNode | None = None
    otherwise: SchemaNode | None = None
    prefix: tuple[SchemaNode, ...] = ()
    all_of: tuple[SchemaNode, ...] = ()
    any_of: tuple[SchemaNode, ...] = ()
    one_of: tuple[SchemaNode, ...] = ()
    properties: dict[str, SchemaNode] = field(default_factory=lambda: NO_NODES)
    by_pattern: dict[str, SchemaNode] = field(default_factory=lambda: NO_NODES)
    dependent_schemas: dict[str, SchemaNode] = field(default_factory=lambda: NO_NODES)
    #: A summary of the node's own keywords, equal for equal nodes; the nodes below it do not count.
    own: tuple[Any, ...] = ()
    #: All nodes that it refers to.
    below: tuple[SchemaNode, ...] = ()
    #: Whether it restricts nothing.
    free: bool = False

    def seal(self, known: dict[tuple[Any, ...], tuple[Any, ...]] | None = None) -> SchemaNode:
        """The node, after computing `own`, `below` and `free` from its other fields.

        known: shares equal `own` values.
        """
        # Most fields of a node have their default, so they are compared by identity first.
        own_members: list[Any] = [
            (name, _hashable(value))
            for (name, default), value in zip(_OWN_DEFAULTS.items(), _own_values(self), strict=True)
            if value is not default and value != default
        ]
        children_below: list[SchemaNode] = []
        for name, child in zip(_SINGLE_NAMES, _single_children(self), strict=True):
            if child is not None:
                own_members.append(name)
                children_below.append(child)
        for name in _LIST_NAMES:
            if children := getattr(self, name):
                own_members.append((name, len(children)))
                children_below += children
        for name in _MAP_NAMES:
            if children_by_name := getattr(self, name):
                keys = tuple(sorted(children_by_name))
                own_members.append((name, keys))
                children_below += [children_by_name[key] for key in keys]
        own_key = tuple(own_members)
        self.own, self.below, self.free = (
            own_key if known is None else known.setdefault(own_key, own_key),
            tuple(children_below),
            not own_key,
        )
        return self

    def requiring(self, name: str) -> SchemaNode:
        """A schema at the same place that only requires a member."""
        return SchemaNode(self.pointer, self.raw, required=frozenset({name})).seal()

    def in_place_subschemas(self) -> Iterator[SchemaNode]:
        """The nodes that apply to the same value as this node."""
        for name in _IN_PLACE_SINGLE_NAMES:
            child = getattr(self, name)
            if child is not None:
                yield child
        for name in _IN_PLACE_LIST_NAMES:
            yield from getattr(self, name)
        yield from self.dependent_schemas.values()

    def location(self, *keywords: str) -> DocumentLocation:
        """The location of the first of the keywords that the schema has, else of the schema itself."""
        if isinstance(self.raw, dict):
            for keyword in keywords:
                if keyword in self.raw:
                    return DocumentLocation(
                        pointer=join_pointer(self.pointer, keyword), fragment=json_fragment(self.raw[keyword])
                    )
        return DocumentLocation(pointer=self.pointer, fragment=json_fragment(self.raw))

    def has_keyword(self, *keywords: str) -> bool:
        """Whether the schema has one of the keywords."""
        return isinstance(self.raw, dict) and any(keyword in self.raw for keyword in keywords)


_SINGLE_NAMES: Final = (
    *("ref", "items", "contains", "unevaluated_items", "additional", "names", "unevaluated", "negated"),
    *("condition", "then", "otherwise"),
)
_LIST_NAMES: Final = ("prefix", "all_of", "any_of", "one_of")
_MAP_NAMES: Final = ("properties", "by_pattern", "dependent_schemas")
_IN_PLACE_SINGLE_NAMES: Final = ("ref", "negated", "condition", "then", "otherwise")
_IN_PLACE_LIST_NAMES: Final = ("all_of", "any_of", "one_of")
#: Fields that belong to a node itself, with their default values.
_OWN_DEFAULTS: Final[dict[str, Any]] = {
    each.name: NO_NODES if each.default is MISSING else each.default
    for each in fields(SchemaNode)
    if each.name not in {"pointer", "raw", "own", "below", "free", *_SINGLE_NAMES, *_LIST_NAMES, *_MAP_NAMES}
}
_own_values: Final = attrgetter(*_OWN_DEFAULTS)
_single_children: Final = attrgetter(*_SINGLE_NAMES)


def _hashable(value: Any) -> Any:
    """A dict as a set: of items if its values are sets of names, else of keys, which determine their values."""
    if not isinstance(value, dict):
        return value
    return frozenset(value.items() if all(isinstance(item, frozenset) for item in value.values()) else value)

"""The content of a schema as small immutable values, which are cheap to cache and to compare.

`start` is the offset of a component in the text, in bytes of UTF-8 (see `xml_tree.location_at`); None for stubs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annals.domain.formats.xsd.content_model import ContentModel, NamespaceWildcard


@dataclass(frozen=True, slots=True)
class ElementDeclaration:
    """An element declaration. type: index of its type in `XsdDocument.types`. identities: its uniqueness rules as
    texts.

    default: the value of an empty element, from `default` or `fixed`. block: kinds of derivation that a substitute type
    must not have.
    """

    name: str
    type: int
    start: int | None
    nillable: bool = False
    fixed: str | None = None
    identities: tuple[str, ...] = ()
    alternatives: tuple[tuple[str, int], ...] = ()
    abstract: bool = False
    default: str | None = None
    block: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AttributeDeclaration:
    name: str
    type: int
    start: int | None
    required: bool = False
    fixed: str | None = None


@dataclass(frozen=True, slots=True)
class FacetBound:
    value: Any
    is_exclusive: bool


@dataclass(frozen=True, slots=True)
class SimpleType:
    """A simple type.

    names: the built-in types (and those of other documents) that it derives from, nearest first. kind: `atomic`, `list`
    or `union`. parts: the item type of a list, the members of a union. low, high: bounds of values. shortest, longest:
    bounds of lengths. values: the enumeration. patterns: one set of alternatives per derivation step; all sets must
    match. space: how white space is normalised: `preserve`, `replace` or `collapse`.
    """

    names: tuple[str, ...]
    kind: str
    start: int | None
    parts: tuple[int, ...] = ()
    low: FacetBound | None = None
    high: FacetBound | None = None
    shortest: int = 0
    longest: int | None = None
    digits: int | None = None
    fraction: int | None = None
    values: tuple[Any, ...] | None = None
    patterns: tuple[frozenset[str], ...] = ()
    assertions: frozenset[str] = frozenset()
    zone: str = "optional"
    space: str = "collapse"


@dataclass(frozen=True, slots=True)
class ComplexType:
    """A complex type.

    text: the simple type of its content, where that is text. derived: named types that may replace it by `xsi:type`,
    each with its kinds of derivation: `extension`, `restriction` or both. block: kinds that are not allowed.
    """

    name: str | None
    start: int | None
    content: ContentModel
    elements: Mapping[str, tuple[ElementDeclaration, ...]]
    attributes: Mapping[str, AttributeDeclaration]
    other_attributes: NamespaceWildcard | None = None
    text: int | None = None
    mixed: bool = False
    abstract: bool = False
    assertions: frozenset[str] = frozenset()
    derived: Mapping[str, frozenset[str]] = field(default_factory=dict)
    block: frozenset[str] = frozenset()


TypeDefinition = SimpleType | ComplexType


@dataclass(frozen=True, slots=True)
class XsdDocument:
    """A parsed schema.

    start: of its root. elements: the global ones. named_types: indexes in `types` of the global types.
    """

    text: str
    start: int | None
    target_namespace: str
    elements: Mapping[str, ElementDeclaration]
    named_types: Mapping[str, int]
    types: tuple[TypeDefinition, ...]

"""What a schema means for the documents that it allows: small values, cheap to keep and to compare.

`start` is where something begins in the text, counted in bytes of UTF-8 (`tree.at`); None for what stands in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.formats.xsd.content_model import ContentModel, NamespaceWildcard


@dataclass(frozen=True, slots=True)
class ElementDeclaration:
    """An element declaration. type: where its type stands in `Schema.types`. identities: its keys as texts.

    default: what an empty element means, be it as `default` or as `fixed`. block: how no type may derive that stands
    for its own.
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
    open: bool


@dataclass(frozen=True, slots=True)
class SimpleType:
    """A simple type.

    names: the built-in types (and those of other documents) that it derives from, nearest first. kind: `atomic`, `list`
    or `union`. parts: the item type of a list, the members of a union. low, high: bounds of values. shortest, longest:
    of lengths. values: the enumeration. patterns: a set of alternatives per step of derivation; all have to match.
    space: what becomes of white space: `preserve`, `replace` or `collapse`.
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
    """A complex type. text: the simple type of its content, where that is text. derived: named types that may stand for
    it by `xsi:type`, each with how it derives: by `extension`, `restriction` or both. block: how none may derive."""

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
    """A schema, parsed. start: of its root. elements: the global ones. named: where global types stand in `types`."""

    text: str
    start: int | None
    target: str
    elements: Mapping[str, ElementDeclaration]
    named: Mapping[str, int]
    types: tuple[TypeDefinition, ...]

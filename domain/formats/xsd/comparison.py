"""Decides whether every document valid for one schema is valid for another, and where it is not.

This implements the XSD column of SC-36: content is closed, so a reader accepts only what it declares, or what a
wildcard matches. Names of types do not matter where documents do not contain them; `xsi:type` contains those of complex
types that derive from a type of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from domain.formats.contract import MAX_INCOMPATIBILITIES, DocumentLocation, Incompatibility
from domain.formats.xsd.content_model import (
    ElementName,
    NamespaceWildcard,
    find_counterexample,
    is_nullable,
    occurrence_counts,
    symbols,
)
from domain.formats.xsd.model import AttributeDeclaration, ComplexType, ElementDeclaration, SimpleType, XsdDocument
from domain.formats.xsd.simple_types import EMPTY_TEXT, simple_type_mismatch
from domain.formats.xsd.xml_tree import location_at

_ANY: Final = "{http://www.w3.org/2001/XMLSchema}anyType"


class XsdComparison:
    """All differences that break a reader of the writer's documents. Each pair of types is compared once."""

    def __init__(self, reader: XsdDocument, writer: XsdDocument) -> None:
        self._reader, self._writer = reader, writer
        self._told: list[Incompatibility] = []
        self._seen: set[tuple[int, int]] = set()
        self._waiting: list[tuple[str, int, int, int | None, int | None]] = []

    def incompatibilities(self) -> list[Incompatibility]:
        """At most MAX_INCOMPATIBILITIES reasons, root element by root element."""
        reader, writer = self._reader, self._writer
        if reader.target != writer.target:
            text = f"the target namespace is {writer.target or 'none'}, the reader's is {reader.target or 'none'}"
            self._tell("target-namespace-changed", text, reader.start, writer.start)
            return self._told
        for name, element in writer.elements.items():
            if not element.abstract:
                self._root(name, element)
        if not writer.elements:  # a library of types, for the elements of other documents
            self._library()
        while self._waiting and len(self._told) < MAX_INCOMPATIBILITIES:
            path, ours, theirs, start, other = self._waiting.pop()
            self._types(path, ours, theirs, start, other)
        return self._told[:MAX_INCOMPATIBILITIES]

    def _tell(self, rule: str, text: str, reader: int | None, writer: int | None) -> None:
        spots: list[DocumentLocation | None] = [
            location_at(self._reader.text, reader),
            location_at(self._writer.text, writer),
        ]
        self._told.append(Incompatibility(rule, text, *spots))

    def _root(self, name: str, element: ElementDeclaration) -> None:
        other = self._reader.elements.get(name)
        if other is None or other.abstract:
            text = f"documents may have the root element {_short(name)}, which the reader does not declare"
            self._tell("root-element-unknown", text, None, element.start)
        else:
            self._elements(_short(name), element, other)

    def _library(self) -> None:
        for name, place in self._writer.named.items():
            found = self._writer.types[place]
            if name in self._reader.named:
                self._push(f"type {_short(name)}", place, self._reader.named[name], found.start, None)
            else:
                self._tell("type-unknown", f"the reader does not define the type {_short(name)}", None, found.start)

    def _push(self, path: str, ours: int, theirs: int, start: int | None, other: int | None) -> None:
        if (ours, theirs) not in self._seen:
            self._seen.add((ours, theirs))
            self._waiting.append((path, ours, theirs, start, other))

    # -- elements and types ---------------------------------------------------------------------------------------

    def _elements(self, path: str, ours: ElementDeclaration, theirs: ElementDeclaration) -> None:
        if ours.nillable and not theirs.nillable:
            self._tell(
                "nillable-removed", f"{path} may be nil, which the reader does not allow", theirs.start, ours.start
            )
        if ours.default is not None and theirs.default is None and not self._takes_nothing(theirs.type):
            text = f"{path} may be empty and mean {ours.default}, the reader has neither a default nor takes it empty"
            self._tell("default-removed", text, theirs.start, ours.start)
        if theirs.fixed is not None and ours.fixed != theirs.fixed:
            text = f"{path} need not be {theirs.fixed}, which the reader has as its only value"
            self._tell("fixed-value-changed", text, theirs.start, ours.start)
        for identity in sorted(set(theirs.identities) - set(ours.identities)):
            text = f"{path} need not satisfy {_without_namespaces(identity)}, which the reader expects"
            self._tell("identity-constraint-added", text, theirs.start, ours.start)
        if [test for test, _ in ours.alternatives] != [test for test, _ in theirs.alternatives]:
            text = f"{path} chooses its type by other tests than the reader does"
            self._tell("alternatives-changed", text, theirs.start, ours.start)
        else:
            for (_, mine), (_, other) in zip(ours.alternatives, theirs.alternatives, strict=True):
                self._push(path, mine, other, ours.start, theirs.start)
        self._push(path, ours.type, theirs.type, ours.start, theirs.start)
        self._substituted(path, ours, theirs)

    def _substituted(self, path: str, ours: ElementDeclaration, theirs: ElementDeclaration) -> None:
        """Compares the types that a document may select with `xsi:type`."""
        mine, other = self._writer.types[ours.type], self._reader.types[theirs.type]
        if not isinstance(mine, ComplexType) or not isinstance(other, ComplexType) or other.name == _ANY:
            return
        for name, how in mine.derived.items():
            place = self._writer.named.get(name)
            if how & (ours.block | mine.block):
                continue
            if place is None or getattr(self._writer.types[place], "abstract", False):
                continue
            start = self._writer.types[place].start
            if blocked := other.derived.get(name, frozenset()) & (theirs.block | other.block):
                text = f"{path} may have the type {_short(name)}, and the reader blocks each {min(blocked)}"
                self._tell("derived-type-blocked", text, theirs.start, start)
                continue
            if name in other.derived and name in self._reader.named:
                self._push(f"{path} ({_short(name)})", place, self._reader.named[name], start, None)
            else:
                text = f"{path} may have the type {_short(name)}, which the reader does not have for it"
                self._tell("derived-type-unknown", text, other.start, start)

    def _takes_nothing(self, place: int) -> bool:
        """Whether a type of the reader accepts an element without content."""
        found = self._reader.types[place]
        if isinstance(found, ComplexType) and found.text is None:
            return is_nullable(found.content)
        text = self._reader.types[found.text] if isinstance(found, ComplexType) and found.text is not None else found
        if isinstance(text, SimpleType) and text.kind == "list":
            return not (text.shortest or text.patterns or text.values is not None)
        return simple_type_mismatch(EMPTY_TEXT, text, (), self._reader.types) is None

    def _types(self, path: str, ours: int, theirs: int, start: int | None, other: int | None) -> None:
        mine, their = self._writer.types[ours], self._reader.types[theirs]
        if isinstance(mine, ComplexType) and mine.abstract and not path.startswith("type "):
            return  # no document contains this type itself
        if isinstance(their, ComplexType) and their.abstract and not path.startswith("type "):
            self._tell(
                "type-abstract", f"{path} has a type that is abstract for the reader", their.start or other, start
            )
        elif isinstance(their, SimpleType):
            self._into_text(path, ours, theirs, start, other)
        elif isinstance(mine, SimpleType):
            self._text_into(path, ours, their, start, other)
        else:
            self._complex(path, mine, their, mine.start or start, their.start or other)

    def _into_text(self, path: str, ours: int, theirs: int, start: int | None, other: int | None) -> None:
        mine = self._writer.types[ours]
        if isinstance(mine, ComplexType):
            for attribute in mine.attributes.values():
                self._unknown(path, attribute, other)
            if mine.other_attributes:
                self._open_attributes(path, start, other)
            if mine.text is None:
                text = f"{path} may have elements or no text, the reader expects plain text"
                self._tell("content-kind-changed", text, other, mine.start or start)
                return
            ours = mine.text
        self._text(path, ours, theirs, start, other)

    def _text(self, path: str, ours: int, theirs: int, start: int | None, other: int | None) -> None:
        mine, their = self._writer.types[ours], self._reader.types[theirs]
        if flaw := simple_type_mismatch(mine, their, self._writer.types, self._reader.types):
            self._tell(flaw[0], f"{path} {flaw[1]}", their.start or other, mine.start or start)

    def _text_into(self, path: str, ours: int, their: ComplexType, start: int | None, other: int | None) -> None:
        """Compares plain text of the writer with a complex type of the reader."""
        for attribute in their.attributes.values():
            if attribute.required:
                self._missing(path, attribute, start)
        self._text_content(path, ours, their, start, other)

    def _text_content(self, path: str, ours: int, their: ComplexType, start: int | None, other: int | None) -> None:
        if their.text is not None:
            self._text(path, ours, their.text, start, other)
        elif not (their.mixed and is_nullable(their.content)):
            text = f"{path} is text, the reader expects elements"
            self._tell("content-kind-changed", text, their.start or other, start)

    def _complex(self, path: str, mine: ComplexType, their: ComplexType, start: int | None, other: int | None) -> None:
        self._attributes(path, mine, their, start, other)
        for test in sorted(their.assertions - mine.assertions):
            text = f"{path} need not satisfy {_without_namespaces(test)}, which the reader asserts"
            self._tell("assertion-added", text, other, start)
        if mine.text is not None:
            self._text_content(path, mine.text, their, start, other)
        elif their.text is not None or (mine.mixed and not their.mixed):
            ours, wanted = ("text among its elements", "none") if their.text is None else ("elements", "text only")
            self._tell("content-kind-changed", f"{path} may have {ours}, the reader expects {wanted}", other, start)
        else:
            self._content(path, mine, their, start, other)

    # -- content --------------------------------------------------------------------------------------------------

    def _content(self, path: str, mine: ComplexType, their: ComplexType, start: int | None, other: int | None) -> None:
        told = len(self._told)
        if mine.content != their.content:
            self._counts(path, mine, their, start, other)
            if len(self._told) == told:
                self._order(path, mine, their, start, other)
        for name, declared in mine.elements.items():
            for ours in declared:
                for theirs in their.elements.get(name) or self._by_wildcard(name, their):
                    self._elements(f"{path}/{_short(name)}", ours, theirs)

    def _by_wildcard(self, name: str, their: ComplexType) -> Iterator[ElementDeclaration]:
        """The global declaration that validates an element which a wildcard of the reader matches."""
        found = self._reader.elements.get(name)
        if found is not None and any(wild.strictness and wild.allows_name(name) for wild in _wilds(their)):
            yield found

    def _counts(self, path: str, mine: ComplexType, their: ComplexType, start: int | None, other: int | None) -> None:
        ours, theirs, wilds = occurrence_counts(mine.content), occurrence_counts(their.content), _wilds(their)
        for name, (low, high) in theirs.items():
            least = ours.get(name, (0, 0))[0]
            if least < low and not (name not in ours and not _plain(their, name)):
                where = their.elements[name][0].start
                have = "does not have" if name not in ours else "need not have" if not least else f"may have {least} of"
                text = f"{path} {have} {_short(name)}, of which the reader expects {low} at least"
                self._tell("element-required", text, where, mine.elements[name][0].start if name in ours else start)
            most = ours.get(name, (0, 0))[1]
            taken = any(wild.allows_name(name) for wild in wilds)
            if high is not None and (most is None or most > high) and not taken:
                text = f"{path} may have {most or 'any number'} of {_short(name)}, the reader takes {high}"
                self._tell("element-count", text, their.elements[name][0].start, mine.elements[name][0].start)
        for name in ours:
            if name not in theirs and not any(self._allows(wild, name) for wild in wilds):
                text = f"{path} may have {_short(name)}, which the reader does not declare there"
                self._tell("element-unknown", text, other, mine.elements[name][0].start)

    def _allows(self, wild: NamespaceWildcard, name: str) -> bool:
        return wild.allows_name(name) and (wild.strictness < 2 or name in self._reader.elements)

    def _order(self, path: str, mine: ComplexType, their: ComplexType, start: int | None, other: int | None) -> None:
        try:
            example = find_counterexample(mine.content, their.content)
        except LookupError:
            text = f"{path} has a content model that is too large to tell whether the reader takes all of it"
            self._tell("content-undecided", text, other, start)
            return
        if example is not None:
            shown = ", ".join(map(_short, example)) or "nothing"
            text = f"{path} may begin with {shown}, the reader expects another order or choice"
            self._tell("content-order", text, other, start)

    # -- attributes -----------------------------------------------------------------------------------------------

    def _attributes(
        self, path: str, mine: ComplexType, their: ComplexType, start: int | None, other: int | None
    ) -> None:
        for name, theirs in their.attributes.items():
            ours = mine.attributes.get(name)
            if theirs.required and (ours is None or not ours.required):
                self._missing(path, theirs, ours.start if ours else start)
            if ours is None:
                continue
            if theirs.fixed is not None and ours.fixed != theirs.fixed:
                text = f"{path}/@{_short(name)} need not be {theirs.fixed}, which the reader has as its only value"
                self._tell("fixed-value-changed", text, theirs.start, ours.start)
            self._text(f"{path}/@{_short(name)}", ours.type, theirs.type, ours.start, theirs.start)
        wild = their.other_attributes
        for name, ours in mine.attributes.items():
            if name not in their.attributes and not (wild and wild.strictness < 2 and wild.allows_name(name)):
                self._unknown(path, ours, other)
        if mine.other_attributes and not (wild and wild.covers(mine.other_attributes)):
            self._open_attributes(path, start, other)

    def _missing(self, path: str, theirs: AttributeDeclaration, start: int | None) -> None:
        text = f"{path} need not have the attribute {_short(theirs.name)}, which the reader requires"
        self._tell("attribute-required", text, theirs.start, start)

    def _unknown(self, path: str, ours: AttributeDeclaration, other: int | None) -> None:
        text = f"{path} may have the attribute {_short(ours.name)}, which the reader does not declare there"
        self._tell("attribute-unknown", text, other, ours.start)

    def _open_attributes(self, path: str, start: int | None, other: int | None) -> None:
        text = f"{path} is open to further attributes, which the reader does not allow"
        self._tell("attribute-wildcard-removed", text, other, start)


def _without_namespaces(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "", path)


def _wilds(found: ComplexType) -> list[NamespaceWildcard]:
    return [symbol for symbol in symbols(found.content) if isinstance(symbol, NamespaceWildcard)]


def _plain(found: ComplexType, name: str) -> bool:
    """Whether a content model contains an element by name."""
    return ElementName(name) in symbols(found.content)


def _short(name: str) -> str:
    """A name without its namespace, for messages."""
    return name.rpartition("}")[2]

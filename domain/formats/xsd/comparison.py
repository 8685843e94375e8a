"""Decides whether every document valid for one schema is valid for another, and where it is not.

This implements the XSD column of SC-36: content is closed, so a reader accepts only what it declares, or what a
wildcard matches. Names of types do not matter where documents do not contain them; `xsi:type` contains those of complex
types that derive from a type of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from annals.domain.formats.contract import DocumentLocation, Incompatibility
from annals.domain.formats.xsd.content_model import (
    ElementName,
    NamespaceWildcard,
    find_counterexample,
    is_nullable,
    occurrence_counts,
    symbols,
)
from annals.domain.formats.xsd.model import (
    AttributeDeclaration,
    ComplexType,
    ElementDeclaration,
    SimpleType,
    XsdDocument,
)
from annals.domain.formats.xsd.simple_types import EMPTY_TEXT, simple_type_mismatch
from annals.domain.formats.xsd.xml_tree import location_at

_ANY_TYPE: Final = "{http://www.w3.org/2001/XMLSchema}anyType"


class XsdComparison:
    """All differences that break a reader of the writer's documents. Each pair of types is compared once."""

    def __init__(self, reader: XsdDocument, writer: XsdDocument, limit: int) -> None:
        self._reader, self._writer, self._limit = reader, writer, limit
        self._incompatibilities: list[Incompatibility] = []
        self._seen_pairs: set[tuple[int, int]] = set()
        self._pending: list[tuple[str, int, int, int | None, int | None]] = []

    def incompatibilities(self) -> list[Incompatibility]:
        """At most `limit` reasons, root element by root element."""
        reader, writer = self._reader, self._writer
        if reader.target_namespace != writer.target_namespace:
            text = (
                f"the target namespace is {writer.target_namespace or 'none'}, the reader's is"
                f" {reader.target_namespace or 'none'}"
            )
            self._report("target-namespace-changed", text, reader.start, writer.start)
            return self._incompatibilities
        for name, element in writer.elements.items():
            if not element.abstract:
                self._compare_root(name, element)
        if not writer.elements:  # a library of types, for the elements of other documents
            self._compare_library()
        while self._pending and len(self._incompatibilities) < self._limit:
            path, writer_index, reader_index, writer_offset, reader_offset = self._pending.pop()
            self._compare_types(path, writer_index, reader_index, writer_offset, reader_offset)
        return self._incompatibilities[: self._limit]

    def _report(self, rule: str, text: str, reader: int | None, writer: int | None) -> None:
        spots: list[DocumentLocation | None] = [
            location_at(self._reader.text, reader),
            location_at(self._writer.text, writer),
        ]
        self._incompatibilities.append(Incompatibility(rule, text, *spots))

    def _compare_root(self, name: str, element: ElementDeclaration) -> None:
        other = self._reader.elements.get(name)
        if other is None or other.abstract:
            text = f"documents may have the root element {_local_name(name)}, which the reader does not declare"
            self._report("root-element-unknown", text, None, element.start)
        else:
            self._compare_elements(_local_name(name), element, other)

    def _compare_library(self) -> None:
        for name, index in self._writer.named_types.items():
            definition = self._writer.types[index]
            if name in self._reader.named_types:
                self._push(f"type {_local_name(name)}", index, self._reader.named_types[name], definition.start, None)
            else:
                self._report(
                    "type-unknown", f"the reader does not define the type {_local_name(name)}", None, definition.start
                )

    def _push(
        self, path: str, writer_index: int, reader_index: int, writer_offset: int | None, reader_offset: int | None
    ) -> None:
        if (writer_index, reader_index) not in self._seen_pairs:
            self._seen_pairs.add((writer_index, reader_index))
            self._pending.append((path, writer_index, reader_index, writer_offset, reader_offset))

    # -- elements and types ---------------------------------------------------------------------------------------

    def _compare_elements(
        self, path: str, writer_element: ElementDeclaration, reader_element: ElementDeclaration
    ) -> None:
        if writer_element.nillable and not reader_element.nillable:
            self._report(
                "nillable-removed",
                f"{path} may be nil, which the reader does not allow",
                reader_element.start,
                writer_element.start,
            )
        if (
            writer_element.default is not None
            and reader_element.default is None
            and not self._accepts_empty(reader_element.type)
        ):
            text = f"{path} may be empty and mean {writer_element.default}, "
            text += "the reader has neither a default nor takes it empty"
            self._report("default-removed", text, reader_element.start, writer_element.start)
        if reader_element.fixed is not None and writer_element.fixed != reader_element.fixed:
            text = f"{path} need not be {reader_element.fixed}, which the reader has as its only value"
            self._report("fixed-value-changed", text, reader_element.start, writer_element.start)
        for identity in sorted(set(reader_element.identities) - set(writer_element.identities)):
            text = f"{path} need not satisfy {_without_namespaces(identity)}, which the reader expects"
            self._report("identity-constraint-added", text, reader_element.start, writer_element.start)
        if [test for test, _ in writer_element.alternatives] != [test for test, _ in reader_element.alternatives]:
            text = f"{path} chooses its type by other tests than the reader does"
            self._report("alternatives-changed", text, reader_element.start, writer_element.start)
        else:
            for (_, writer_index), (_, reader_index) in zip(
                writer_element.alternatives, reader_element.alternatives, strict=True
            ):
                self._push(path, writer_index, reader_index, writer_element.start, reader_element.start)
        self._push(path, writer_element.type, reader_element.type, writer_element.start, reader_element.start)
        self._compare_substitutes(path, writer_element, reader_element)

    def _compare_substitutes(
        self, path: str, writer_element: ElementDeclaration, reader_element: ElementDeclaration
    ) -> None:
        """Compares the types that a document may select with `xsi:type`."""
        writer_type, reader_type = self._writer.types[writer_element.type], self._reader.types[reader_element.type]
        if (
            not isinstance(writer_type, ComplexType)
            or not isinstance(reader_type, ComplexType)
            or reader_type.name == _ANY_TYPE
        ):
            return
        for name, derivations in writer_type.derived.items():
            index = self._writer.named_types.get(name)
            if derivations & (writer_element.block | writer_type.block):
                continue
            if index is None or getattr(self._writer.types[index], "abstract", False):
                continue
            writer_offset = self._writer.types[index].start
            if blocked_derivations := reader_type.derived.get(name, frozenset()) & (
                reader_element.block | reader_type.block
            ):
                text = (
                    f"{path} may have the type {_local_name(name)}, and the reader blocks each"
                    f" {min(blocked_derivations)}"
                )
                self._report("derived-type-blocked", text, reader_element.start, writer_offset)
                continue
            if name in reader_type.derived and name in self._reader.named_types:
                self._push(f"{path} ({_local_name(name)})", index, self._reader.named_types[name], writer_offset, None)
            else:
                text = f"{path} may have the type {_local_name(name)}, which the reader does not have for it"
                self._report("derived-type-unknown", text, reader_type.start, writer_offset)

    def _accepts_empty(self, index: int) -> bool:
        """Whether a type of the reader accepts an element without content."""
        definition = self._reader.types[index]
        if isinstance(definition, ComplexType) and definition.text is None:
            return is_nullable(definition.content)
        text = (
            self._reader.types[definition.text]
            if isinstance(definition, ComplexType) and definition.text is not None
            else definition
        )
        if isinstance(text, SimpleType) and text.kind == "list":
            return not (text.shortest or text.patterns or text.values is not None)
        return simple_type_mismatch(EMPTY_TEXT, text, (), self._reader.types) is None

    def _compare_types(
        self, path: str, writer_index: int, reader_index: int, writer_offset: int | None, reader_offset: int | None
    ) -> None:
        writer_type, reader_type = self._writer.types[writer_index], self._reader.types[reader_index]
        if isinstance(writer_type, ComplexType) and writer_type.abstract and not path.startswith("type "):
            return  # no document contains this type itself
        if isinstance(reader_type, ComplexType) and reader_type.abstract and not path.startswith("type "):
            self._report(
                "type-abstract",
                f"{path} has a type that is abstract for the reader",
                reader_type.start or reader_offset,
                writer_offset,
            )
        elif isinstance(reader_type, SimpleType):
            self._compare_with_simple_reader(path, writer_index, reader_index, writer_offset, reader_offset)
        elif isinstance(writer_type, SimpleType):
            self._compare_with_simple_writer(path, writer_index, reader_type, writer_offset, reader_offset)
        else:
            self._compare_complex(
                path, writer_type, reader_type, writer_type.start or writer_offset, reader_type.start or reader_offset
            )

    def _compare_with_simple_reader(
        self, path: str, writer_index: int, reader_index: int, writer_offset: int | None, reader_offset: int | None
    ) -> None:
        writer_type = self._writer.types[writer_index]
        if isinstance(writer_type, ComplexType):
            for attribute in writer_type.attributes.values():
                self._report_unknown(path, attribute, reader_offset)
            if writer_type.other_attributes:
                self._report_open_attributes(path, writer_offset, reader_offset)
            if writer_type.text is None:
                text = f"{path} may have elements or no text, the reader expects plain text"
                self._report("content-kind-changed", text, reader_offset, writer_type.start or writer_offset)
                return
            writer_index = writer_type.text
        self._compare_text(path, writer_index, reader_index, writer_offset, reader_offset)

    def _compare_text(
        self, path: str, writer_index: int, reader_index: int, writer_offset: int | None, reader_offset: int | None
    ) -> None:
        writer_type, reader_type = self._writer.types[writer_index], self._reader.types[reader_index]
        if mismatch := simple_type_mismatch(writer_type, reader_type, self._writer.types, self._reader.types):
            self._report(
                mismatch[0],
                f"{path} {mismatch[1]}",
                reader_type.start or reader_offset,
                writer_type.start or writer_offset,
            )

    def _compare_with_simple_writer(
        self,
        path: str,
        writer_index: int,
        reader_type: ComplexType,
        writer_offset: int | None,
        reader_offset: int | None,
    ) -> None:
        """Compares plain text of the writer with a complex type of the reader."""
        for attribute in reader_type.attributes.values():
            if attribute.required:
                self._report_missing(path, attribute, writer_offset)
        self._compare_text_content(path, writer_index, reader_type, writer_offset, reader_offset)

    def _compare_text_content(
        self,
        path: str,
        writer_index: int,
        reader_type: ComplexType,
        writer_offset: int | None,
        reader_offset: int | None,
    ) -> None:
        if reader_type.text is not None:
            self._compare_text(path, writer_index, reader_type.text, writer_offset, reader_offset)
        elif not (reader_type.mixed and is_nullable(reader_type.content)):
            text = f"{path} is text, the reader expects elements"
            self._report("content-kind-changed", text, reader_type.start or reader_offset, writer_offset)

    def _compare_complex(
        self,
        path: str,
        writer_type: ComplexType,
        reader_type: ComplexType,
        writer_offset: int | None,
        reader_offset: int | None,
    ) -> None:
        self._compare_attributes(path, writer_type, reader_type, writer_offset, reader_offset)
        for assertion in sorted(reader_type.assertions - writer_type.assertions):
            text = f"{path} need not satisfy {_without_namespaces(assertion)}, which the reader asserts"
            self._report("assertion-added", text, reader_offset, writer_offset)
        if writer_type.text is not None:
            self._compare_text_content(path, writer_type.text, reader_type, writer_offset, reader_offset)
        elif reader_type.text is not None or (writer_type.mixed and not reader_type.mixed):
            writer_content, reader_content = (
                ("text among its elements", "none") if reader_type.text is None else ("elements", "text only")
            )
            self._report(
                "content-kind-changed",
                f"{path} may have {writer_content}, the reader expects {reader_content}",
                reader_offset,
                writer_offset,
            )
        else:
            self._compare_content(path, writer_type, reader_type, writer_offset, reader_offset)

    # -- content --------------------------------------------------------------------------------------------------

    def _compare_content(
        self,
        path: str,
        writer_type: ComplexType,
        reader_type: ComplexType,
        writer_offset: int | None,
        reader_offset: int | None,
    ) -> None:
        reported_before = len(self._incompatibilities)
        if writer_type.content != reader_type.content:
            self._compare_counts(path, writer_type, reader_type, writer_offset, reader_offset)
            if len(self._incompatibilities) == reported_before:
                self._compare_order(path, writer_type, reader_type, writer_offset, reader_offset)
        for name, declared in writer_type.elements.items():
            for writer_element in declared:
                for reader_element in reader_type.elements.get(name) or self._wildcard_declarations(name, reader_type):
                    self._compare_elements(f"{path}/{_local_name(name)}", writer_element, reader_element)

    def _wildcard_declarations(self, name: str, reader_type: ComplexType) -> Iterator[ElementDeclaration]:
        """The global declaration that validates an element which a wildcard of the reader matches."""
        declaration = self._reader.elements.get(name)
        if declaration is not None and any(
            wildcard.strictness and wildcard.allows_name(name) for wildcard in _wildcards(reader_type)
        ):
            yield declaration

    def _compare_counts(
        self,
        path: str,
        writer_type: ComplexType,
        reader_type: ComplexType,
        writer_offset: int | None,
        reader_offset: int | None,
    ) -> None:
        writer_counts, reader_counts, wildcards = (
            occurrence_counts(writer_type.content),
            occurrence_counts(reader_type.content),
            _wildcards(reader_type),
        )
        for name, (reader_minimum, reader_maximum) in reader_counts.items():
            writer_minimum = writer_counts.get(name, (0, 0))[0]
            if writer_minimum < reader_minimum and not (
                name not in writer_counts and not _has_element(reader_type, name)
            ):
                reader_element_offset = reader_type.elements[name][0].start
                have = (
                    "does not have"
                    if name not in writer_counts
                    else "need not have"
                    if not writer_minimum
                    else f"may have {writer_minimum} of"
                )
                text = f"{path} {have} {_local_name(name)}, of which the reader expects {reader_minimum} at least"
                self._report(
                    "element-required",
                    text,
                    reader_element_offset,
                    writer_type.elements[name][0].start if name in writer_counts else writer_offset,
                )
            writer_maximum = writer_counts.get(name, (0, 0))[1]
            matches_wildcard = any(wildcard.allows_name(name) for wildcard in wildcards)
            if (
                reader_maximum is not None
                and (writer_maximum is None or writer_maximum > reader_maximum)
                and not matches_wildcard
            ):
                text = f"{path} may have {writer_maximum or 'any number'} of {_local_name(name)}, "
                text += f"the reader takes {reader_maximum}"
                self._report(
                    "element-count", text, reader_type.elements[name][0].start, writer_type.elements[name][0].start
                )
        for name in writer_counts:
            if name not in reader_counts and not any(self._allows(wildcard, name) for wildcard in wildcards):
                text = f"{path} may have {_local_name(name)}, which the reader does not declare there"
                self._report("element-unknown", text, reader_offset, writer_type.elements[name][0].start)

    def _allows(self, wildcard: NamespaceWildcard, name: str) -> bool:
        return wildcard.allows_name(name) and (wildcard.strictness < 2 or name in self._reader.elements)

    def _compare_order(
        self,
        path: str,
        writer_type: ComplexType,
        reader_type: ComplexType,
        writer_offset: int | None,
        reader_offset: int | None,
    ) -> None:
        try:
            example = find_counterexample(writer_type.content, reader_type.content)
        except LookupError:
            text = f"{path} has a content model that is too large to tell whether the reader takes all of it"
            self._report("content-undecided", text, reader_offset, writer_offset)
            return
        if example is not None:
            names = ", ".join(map(_local_name, example)) or "nothing"
            text = f"{path} may begin with {names}, the reader expects another order or choice"
            self._report("content-order", text, reader_offset, writer_offset)

    # -- attributes -----------------------------------------------------------------------------------------------

    def _compare_attributes(
        self,
        path: str,
        writer_type: ComplexType,
        reader_type: ComplexType,
        writer_offset: int | None,
        reader_offset: int | None,
    ) -> None:
        for name, reader_attribute in reader_type.attributes.items():
            writer_attribute = writer_type.attributes.get(name)
            if reader_attribute.required and (writer_attribute is None or not writer_attribute.required):
                self._report_missing(
                    path, reader_attribute, writer_attribute.start if writer_attribute else writer_offset
                )
            if writer_attribute is None:
                continue
            if reader_attribute.fixed is not None and writer_attribute.fixed != reader_attribute.fixed:
                text = f"{path}/@{_local_name(name)} need not be {reader_attribute.fixed}, "
                text += "which the reader has as its only value"
                self._report("fixed-value-changed", text, reader_attribute.start, writer_attribute.start)
            self._compare_text(
                f"{path}/@{_local_name(name)}",
                writer_attribute.type,
                reader_attribute.type,
                writer_attribute.start,
                reader_attribute.start,
            )
        wildcard = reader_type.other_attributes
        for name, writer_attribute in writer_type.attributes.items():
            if name not in reader_type.attributes and not (
                wildcard and wildcard.strictness < 2 and wildcard.allows_name(name)
            ):
                self._report_unknown(path, writer_attribute, reader_offset)
        if writer_type.other_attributes and not (wildcard and wildcard.is_superset_of(writer_type.other_attributes)):
            self._report_open_attributes(path, writer_offset, reader_offset)

    def _report_missing(self, path: str, reader_attribute: AttributeDeclaration, writer_offset: int | None) -> None:
        text = f"{path} need not have the attribute {_local_name(reader_attribute.name)}, which the reader requires"
        self._report("attribute-required", text, reader_attribute.start, writer_offset)

    def _report_unknown(self, path: str, writer_attribute: AttributeDeclaration, reader_offset: int | None) -> None:
        text = (
            f"{path} may have the attribute {_local_name(writer_attribute.name)}, which the reader does not"
            " declare there"
        )
        self._report("attribute-unknown", text, reader_offset, writer_attribute.start)

    def _report_open_attributes(self, path: str, writer_offset: int | None, reader_offset: int | None) -> None:
        text = f"{path} is open to further attributes, which the reader does not allow"
        self._report("attribute-wildcard-removed", text, reader_offset, writer_offset)


def _without_namespaces(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "", path)


def _wildcards(definition: ComplexType) -> list[NamespaceWildcard]:
    return [symbol for symbol in symbols(definition.content) if isinstance(symbol, NamespaceWildcard)]


def _has_element(definition: ComplexType, name: str) -> bool:
    """Whether a content model contains an element by name."""
    return ElementName(name) in symbols(definition.content)


def _local_name(name: str) -> str:
    """A name without its namespace, for messages."""
    return name.rpartition("}")[2]

"""The fields of an XML schema."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element, fromstring

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import SchemaField, join_path
from annals.domain.formats.xsd.model import XsdDocument
from annals.domain.formats.xsd.xml_tree import XS, parse_xml

#: Components that a path names.
_NAMED: Final = frozenset({f"{{{XS}}}{kind}" for kind in ("element", "complexType", "group", "attributeGroup")})
_ELEMENT: Final = f"{{{XS}}}element"
_ATTRIBUTE: Final = f"{{{XS}}}attribute"
_CHOICE: Final = f"{{{XS}}}choice"
_RESTRICTION: Final = f"{{{XS}}}restriction"
#: Facets that a type may have several times.
_REPEATED_FACETS: Final = frozenset({"enumeration", "pattern"})
#: Attributes of elements and attributes that no field shows.
_OCCURRENCE: Final = ("default", "fixed", "minOccurs", "maxOccurs")
_NEWLINE: Final = ord("\n")


def fields(parsed: XsdDocument) -> Iterator[SchemaField]:
    """The elements and attributes of each global element, type and group; an attribute's name begins with `@`.

    A global type is not repeated where an element uses it. `optional` means `minOccurs="0"`, `nillable`, a choice, or
    an attribute that is not required.
    """
    lines = _ElementLines(parsed.text)
    for component in lines.root:
        if component.tag in _NAMED and "name" in component.attrib:
            name = component.attrib["name"]
            if component.tag == _ELEMENT:
                yield SchemaField(name, name, _label(component), False, _doc(component), lines.location(component))
            yield from _below(component, name, False, lines)


def declarations(parsed: XsdDocument) -> Iterator[SchemaField]:
    """What a schema declares besides fields: named types and groups, the facets of simple types, and how often and with
    which values elements and attributes occur.

    The path of a facet ends with its value where several may have the same name.
    """
    lines = _ElementLines(parsed.text)
    for component in lines.root:
        name, kind = component.attrib.get("name"), component.tag.rpartition("}")[2]
        if name is None:
            continue
        if component.tag != _ELEMENT:
            yield SchemaField(name, name, kind, False, _doc(component), lines.location(component))
        yield from _occurrence(component, name, lines)
        yield from _facets(component, name, lines)


def text(parsed: XsdDocument) -> str:
    """The text of the schema."""
    return parsed.text


class _ElementLines:
    """The elements of a schema with their lines."""

    def __init__(self, text: str) -> None:
        data = text.encode()
        #: Safe for any text that was parsed before: that parser refuses DTDs.
        self.root = fromstring(data)
        newlines = [offset for offset, byte in enumerate(data) if byte == _NEWLINE]
        pairs = zip(self.root.iter(), parse_xml(text).iter(), strict=True)
        self._lines = {id(element): bisect_left(newlines, node.start) + 1 for element, node in pairs}

    def location(self, element: Element) -> DocumentLocation:
        return DocumentLocation(line=self._lines[id(element)])


def _below(element: Element, path: str, optional: bool, lines: _ElementLines) -> Iterator[SchemaField]:
    for child in element:
        name = child.attrib.get("name") or child.attrib.get("ref", "").rpartition(":")[2]
        if child.tag in (_ELEMENT, _ATTRIBUTE) and name:
            name = f"@{name}" if child.tag == _ATTRIBUTE else name
            field_path = join_path(path, name)
            is_optional = optional or _is_optional(child)
            yield SchemaField(field_path, name, _label(child), is_optional, _doc(child), lines.location(child))
            yield from _below(child, field_path, False, lines)
        else:
            yield from _below(child, path, optional or child.tag == _CHOICE or _is_absent(child), lines)


def _occurrence(element: Element, path: str, lines: _ElementLines) -> Iterator[SchemaField]:
    for name in _OCCURRENCE:
        if name in element.attrib:
            value = element.attrib[name]
            yield SchemaField(f"{path} {name}", name, value, False, "", lines.location(element))


def _facets(element: Element, path: str, lines: _ElementLines) -> Iterator[SchemaField]:
    for child in element:
        name, value = child.attrib.get("name") or child.attrib.get("ref"), child.attrib.get("value")
        if child.tag in (_ELEMENT, _ATTRIBUTE) and name:
            step = f"@{name}" if child.tag == _ATTRIBUTE else name.rpartition(":")[2]
            yield from _occurrence(child, join_path(path, step), lines)
            yield from _facets(child, join_path(path, step), lines)
        elif element.tag == _RESTRICTION and value is not None:
            facet = child.tag.rpartition("}")[2]
            facet_path = f"{path} {facet}" + (f" {value}" if facet in _REPEATED_FACETS else "")
            yield SchemaField(facet_path, facet, value, False, _doc(child), lines.location(child))
        else:
            yield from _facets(child, path, lines)


def _is_optional(child: Element) -> bool:
    if child.tag == _ATTRIBUTE:
        return child.attrib.get("use") != "required"
    return _is_absent(child) or child.attrib.get("nillable") in ("true", "1")


def _is_absent(child: Element) -> bool:
    return child.attrib.get("minOccurs") == "0"


def _label(element: Element) -> str:
    type = element.attrib.get("type", "").rpartition(":")[2]
    if not type:
        bases = (node.attrib["base"] for node in element.iter() if "base" in node.attrib)
        type = "complex" if any(n.tag == f"{{{XS}}}complexType" for n in element) else next(bases, "any")
        type = type.rpartition(":")[2]
    repeated = element.attrib.get("maxOccurs", "1") != "1"
    return f"list<{type}>" if repeated else type


def _doc(element: Element) -> str:
    found = element.find(f"{{{XS}}}annotation/{{{XS}}}documentation")
    return " ".join("".join(found.itertext()).split()) if found is not None else ""

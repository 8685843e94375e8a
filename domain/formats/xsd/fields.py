"""The fields of an XML schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element, fromstring

from annals.domain.formats.fields import SchemaField, join_path
from annals.domain.formats.xsd.model import XsdDocument
from annals.domain.formats.xsd.xml_tree import XS

#: Components that a path names.
_NAMED: Final = frozenset({f"{{{XS}}}{kind}" for kind in ("element", "complexType", "group", "attributeGroup")})
_ELEMENT: Final = f"{{{XS}}}element"
_ATTRIBUTE: Final = f"{{{XS}}}attribute"
_CHOICE: Final = f"{{{XS}}}choice"


def fields(parsed: XsdDocument) -> Iterator[SchemaField]:
    """The elements and attributes of each global element, type and group; an attribute's name begins with `@`.

    A global type is not repeated where an element uses it. `optional` means `minOccurs="0"`, `nillable`, a choice, or
    an attribute that is not required.
    """
    # Safe for any text that was parsed before: that parser refuses DTDs.
    for component in fromstring(parsed.text.encode()):
        if component.tag in _NAMED and "name" in component.attrib:
            name = component.attrib["name"]
            if component.tag == _ELEMENT:
                yield SchemaField(name, name, _label(component), False, _doc(component))
            yield from _below(component, name, False)


def _below(element: Element, path: str, optional: bool) -> Iterator[SchemaField]:
    for child in element:
        name = child.attrib.get("name") or child.attrib.get("ref", "").rpartition(":")[2]
        if child.tag in (_ELEMENT, _ATTRIBUTE) and name:
            name = f"@{name}" if child.tag == _ATTRIBUTE else name
            field_path = join_path(path, name)
            is_optional = optional or _is_optional(child)
            yield SchemaField(field_path, name, _label(child), is_optional, _doc(child))
            yield from _below(child, field_path, False)
        else:
            yield from _below(child, path, optional or child.tag == _CHOICE or _is_absent(child))


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

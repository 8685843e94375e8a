"""Stub schemas for the names that a schema takes from other documents.

Referenced documents are never fetched, but real schemas import and include others. So each name from such a document
gets a stub that is valid where the name is used, and that equals only itself: the stub of a type or a group has an
element or an attribute `content-of-NAME` that nothing else has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import quoteattr

from annals.domain.formats.contract import InvalidDocument
from annals.domain.formats.xsd.xml_tree import XML, XS, XmlElement, location_at

_XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
_KNOWN_NAMESPACES: Final = frozenset({XS, XML, _XSI})
_GLOBAL_TAGS: Final = frozenset(f"{{{XS}}}{kind}" for kind in ("element", "attribute", "group", "attributeGroup"))
_TYPE_TAGS: Final = frozenset({f"{{{XS}}}simpleType", f"{{{XS}}}complexType"})
_NUMERIC_FACETS: Final = frozenset(
    f"{{{XS}}}{name}"
    for name in ("minInclusive", "maxInclusive", "minExclusive", "maxExclusive", "totalDigits", "fractionDigits")
)
_CONTENT_PREFIX: Final = "content-of-"
_ANY_ELEMENT: Final = '<xs:any processContents="skip" minOccurs="0" maxOccurs="unbounded"/>'
_ANY_ATTRIBUTE: Final = '<xs:anyAttribute processContents="skip"/>'
_STRING_RESTRICTION: Final = '<xs:restriction base="xs:string"/>'

#: The stub for a name, by its use; a name with several uses gets the first of these.
_STUBS: Final = {
    "number": '<xs:simpleType name="{0}"><xs:restriction base="xs:decimal"/></xs:simpleType>',
    "simple": '<xs:simpleType name="{0}">' + _STRING_RESTRICTION + "</xs:simpleType>",
    "narrowed text": (
        '<xs:complexType name="{0}"><xs:simpleContent><xs:extension base="xs:string">'
        + _ANY_ATTRIBUTE
        + "</xs:extension></xs:simpleContent></xs:complexType>"
    ),
    "extended text": '<xs:simpleType name="{0}">' + _STRING_RESTRICTION + "</xs:simpleType>",
    "narrowed": (
        '<xs:complexType name="{0}" mixed="true"><xs:sequence>'
        + _ANY_ELEMENT
        + "</xs:sequence>"
        + _ANY_ATTRIBUTE
        + "</xs:complexType>"
    ),
    # Without an element of its own: a non-empty type must agree with its extension in being mixed. The extension may
    # itself be restricted, and then names attributes that it inherits from here.
    "extended": (
        '<xs:complexType name="{0}"><xs:attribute name="{1}"/>'
        '<xs:anyAttribute namespace="##targetNamespace" processContents="skip"/></xs:complexType>'
    ),
    "type": (
        '<xs:complexType name="{0}" mixed="true"><xs:sequence>'
        '<xs:element name="{1}" minOccurs="0" maxOccurs="unbounded"/></xs:sequence></xs:complexType>'
    ),
    "element": '<xs:element name="{0}"/>',
    "attribute": '<xs:attribute name="{0}"/>',
    "group": '<xs:group name="{0}"><xs:sequence><xs:element name="{1}" minOccurs="0"/></xs:sequence></xs:group>',
    "attributeGroup": '<xs:attributeGroup name="{0}"><xs:attribute name="{1}"/></xs:attributeGroup>',
}
_USE_ORDER: Final = {use: place for place, use in enumerate(_STUBS)}


def stub_schemas(root: XmlElement, text: str) -> dict[str, str]:
    """Stub schemas by namespace with the names that a schema takes from its imports and includes.

    Raises: InvalidDocument where it changes definitions of another document (`redefine`, `override`), which are
    unknown.
    """
    target = root.attributes.get("targetNamespace", "")
    imported_namespaces = set()
    for node in root.children:
        if node.tag == f"{{{XS}}}import":
            imported_namespaces.add(node.attributes.get("namespace", "").strip())
        elif node.tag == f"{{{XS}}}include":
            imported_namespaces.add(target)
        elif node.tag in (f"{{{XS}}}redefine", f"{{{XS}}}override"):
            if any(child.tag != f"{{{XS}}}annotation" for child in node.children):
                element_name = node.tag.rpartition("}")[2]
                raise InvalidDocument(
                    f"xs:{element_name} changes a document that is not here", location_at(text, node.start)
                )
            imported_namespaces.add(target)
    own_names = {(_reference_kind(node), node.attributes.get("name", "").strip()) for node in root.children}
    usage_by_name: dict[tuple[str, str, str], str] = {}
    for usage, (namespace, local) in _references(root):
        kind = usage if f"{{{XS}}}{usage}" in _GLOBAL_TAGS else "type"
        if namespace in imported_namespaces - _KNOWN_NAMESPACES and not (
            namespace == target and (kind, local) in own_names
        ):
            key = namespace, kind, local
            usage_by_name[key] = min(usage, usage_by_name.get(key, usage), key=_USE_ORDER.__getitem__)
    stubs_by_namespace: dict[str, list[str]] = {
        namespace: [] for namespace in imported_namespaces - _KNOWN_NAMESPACES - {target}
    }
    for (namespace, _, local), usage in sorted(usage_by_name.items()):
        if local and not set(local) & set("<>&\"' "):
            stubs_by_namespace.setdefault(namespace, []).append(_STUBS[usage].format(local, _CONTENT_PREFIX + local))
    return {namespace: _schema_text(namespace, parts) for namespace, parts in stubs_by_namespace.items()}


def _schema_text(namespace: str, parts: list[str]) -> str:
    target_attributes = f" targetNamespace={quoteattr(namespace)} elementFormDefault='qualified'" if namespace else ""
    return f'<xs:schema xmlns:xs="{XS}"{target_attributes}>{"".join(parts)}</xs:schema>'


def _reference_kind(node: XmlElement) -> str:
    return "type" if node.tag in _TYPE_TAGS else node.tag.rpartition("}")[2]


def _references(root: XmlElement) -> Iterator[tuple[str, tuple[str, str]]]:
    """The use of each name that a schema refers to, with namespace and local name."""
    pending: list[tuple[XmlElement, XmlElement]] = [(root, root)]
    while pending:
        parent, node = pending.pop()
        for usage, value in _references_of_node(parent, node):
            for name in value.split():
                yield usage, node.resolve(name)
        pending.extend((node, child) for child in node.children)


def _references_of_node(parent: XmlElement, node: XmlElement) -> Iterator[tuple[str, str]]:
    attribute, tag = node.attributes.get, node.tag.removeprefix(f"{{{XS}}}")
    if node.tag in _GLOBAL_TAGS and (ref := attribute("ref")):
        yield tag, ref
    if head_names := attribute("substitutionGroup"):
        yield "element", head_names
    if kind := attribute("type"):
        yield ("simple" if tag == "attribute" else "type"), kind
    if tag in ("list", "union") and (members := attribute("itemType") or attribute("memberTypes")):
        yield "simple", members
    if tag in ("restriction", "extension") and (base_name := attribute("base")):
        yield _derivation_use(parent.tag.removeprefix(f"{{{XS}}}"), tag, node), base_name


def _derivation_use(parent: str, tag: str, node: XmlElement) -> str:
    if parent == "complexContent":
        return "extended" if tag == "extension" else "narrowed"
    if parent == "simpleContent":
        return "extended text" if tag == "extension" else "narrowed text"
    return "number" if any(child.tag in _NUMERIC_FACETS for child in node.children) else "simple"

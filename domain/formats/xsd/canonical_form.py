"""A normal form of schemas: equal bytes for documents that differ in spelling only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import escape

from annals.domain.formats.xsd.xml_tree import PREFIX_PATTERN, XML, XS, XmlElement

_XS_PREFIX: Final = f"{{{XS}}}"
_QNAME_ATTRIBUTES: Final = frozenset(
    {*("type", "base", "ref", "refer", "itemType", "memberTypes", "substitutionGroup"), "defaultAttributes"}
)
_XPATH_ATTRIBUTES: Final = frozenset({"xpath", "test"})
#: Attributes with their default values, which are redundant.
_DEFAULT_ATTRIBUTES: Final = {
    *(("minOccurs", "1"), ("maxOccurs", "1"), ("use", "optional"), ("nillable", "false"), ("abstract", "false")),
    *(("mixed", "false"), ("elementFormDefault", "unqualified"), ("attributeFormDefault", "unqualified")),
    *(("processContents", "strict"), ("fixed", "false"), ("blockDefault", ""), ("finalDefault", "")),
}
#: Children of the schema element whose order has no meaning.
_UNORDERED_TAGS: Final = frozenset(
    _XS_PREFIX + name
    for name in ("element", "attribute", "simpleType", "complexType", "group", "attributeGroup", "notation")
)


def canonical_form(root: XmlElement) -> bytes:
    """A schema without comments, annotations and whitespace, with prefixes and orders that depend on its content only.

    Prefixes are `xs`, `tns` for the target namespace, and `n1`, `n2` … for the others in the order of their URIs.
    Attributes are sorted by name, those with default values are removed, and global declarations are sorted by kind and
    name. O(n log n).
    """
    target = root.attributes.get("targetNamespace", "")
    namespaces = sorted({uri for node in _significant_nodes(root) for uri in _namespaces(node)} - {XS, XML, target, ""})
    prefixes = {uri: f"n{number}" for number, uri in enumerate(namespaces, 1)} | {XS: "xs", XML: "xml"}
    if target not in ("", XS, XML):
        prefixes[target] = "tns"
    declared = "".join(
        f' xmlns:{prefix}="{_quote(uri)}"'
        for uri, prefix in sorted(prefixes.items(), key=lambda item: item[1])
        if uri != XML
    )
    return _schema_text(root, prefixes, declared).encode()


def _significant_nodes(root: XmlElement) -> Iterator[XmlElement]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(child for child in node.children if not _is_annotation(child))


def _namespaces(node: XmlElement) -> set[str]:
    namespaces = {name[1:].partition("}")[0] for name in (node.tag, *node.attributes) if name.startswith("{")}
    for name, value in node.attributes.items():
        if name in _QNAME_ATTRIBUTES:
            namespaces |= {node.resolve(qname)[0] for qname in value.split()}
        elif name in _XPATH_ATTRIBUTES:
            namespaces |= {node.scope[match[2]] for match in PREFIX_PATTERN.finditer(value) if match[2] in node.scope}
    return namespaces


def _schema_text(root: XmlElement, prefixes: dict[str, str], declared: str) -> str:
    ordered_texts = [
        _canonical_element(node, prefixes)
        for node in root.children
        if node.tag not in _UNORDERED_TAGS and not _is_annotation(node)
    ]
    sorted_texts = sorted(_canonical_element(node, prefixes) for node in root.children if node.tag in _UNORDERED_TAGS)
    return _element_text(root, prefixes, declared, "".join([*ordered_texts, *sorted_texts]))


def _is_annotation(node: XmlElement) -> bool:
    return node.tag == _XS_PREFIX + "annotation"


def _canonical_element(node: XmlElement, prefixes: dict[str, str]) -> str:
    inner = "".join(_canonical_element(child, prefixes) for child in node.children if not _is_annotation(child))
    return _element_text(node, prefixes, "", inner)


def _element_text(node: XmlElement, prefixes: dict[str, str], declared: str, inner: str) -> str:
    attributes = "".join(
        f' {_prefixed_name(name, prefixes)}="{_quote(_canonical_value(node, name, value, prefixes))}"'
        for name, value in sorted(node.attributes.items())
        if (name, value.strip()) not in _DEFAULT_ATTRIBUTES or _is_significant(node, name)
    )
    tag = _prefixed_name(node.tag, prefixes)
    return f"<{tag}{declared}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{declared}{attributes}/>"


def _is_significant(node: XmlElement, name: str) -> bool:
    """Whether an attribute has a meaning beyond its default: `fixed` and `mixed` do in some elements."""
    if name == "fixed":
        return node.tag in (_XS_PREFIX + "element", _XS_PREFIX + "attribute")
    return name == "mixed" and node.tag == _XS_PREFIX + "complexContent"


def _prefixed_name(name: str, prefixes: dict[str, str]) -> str:
    uri, _, local = name[1:].rpartition("}") if name.startswith("{") else ("", "", name)
    return _join_qname(uri, local, prefixes)


def _canonical_value(node: XmlElement, name: str, value: str, prefixes: dict[str, str]) -> str:
    if name in _QNAME_ATTRIBUTES:
        return " ".join(_join_qname(*node.resolve(part), prefixes) for part in value.split())
    if name in _XPATH_ATTRIBUTES:
        return PREFIX_PATTERN.sub(
            lambda found: found[1] or f"{prefixes.get(node.scope.get(found[2], ''), found[2])}:",
            " ".join(value.split()),
        )
    return value


def _join_qname(uri: str, local: str, prefixes: dict[str, str]) -> str:
    return f"{prefixes[uri]}:{local}" if uri else local


def _quote(value: str) -> str:
    return escape(value, {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})

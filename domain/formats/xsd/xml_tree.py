"""XML documents as trees with offsets and prefixes; the parser refuses DTDs."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from annals.domain.formats.contract import MAX_FRAGMENT, DocumentLocation, InvalidDocument

XS: Final = "http://www.w3.org/2001/XMLSchema"
XML: Final = "http://www.w3.org/XML/1998/namespace"

#: Limits far above any schema that people write; documents beyond them would exhaust the process.
_MAX_DEPTH: Final = 200
_MAX_ELEMENTS: Final = 100_000

_DECLARATION: Final = re.compile(r"\A<\?xml\s[^>]*\?>")
_ENCODING: Final = re.compile(rb"""\A<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
#: Encodings besides Unicode that a declaration may name; codecs that do more than map bytes to characters are excluded.
_EIGHT_BIT: Final = re.compile(r"(us-?)?ascii|(iso-?8859-|windows-?125|cp125)\d{1,2}|latin-?1", re.IGNORECASE)


#: A prefix in an XPath expression, or a literal, which contains no prefix.
PREFIX_PATTERN: Final = re.compile(r"""("[^"]*"|'[^']*')|([A-Za-z_][\w.\-]*):(?=[A-Za-z_*])""")


@dataclass(slots=True)
class XmlElement:
    """An element. tag and attribute names: `{namespace}local`, or `local` without a namespace.

    start: its offset in bytes of UTF-8. scope: namespaces by prefix.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    scope: Mapping[str, str]
    children: list[XmlElement] = field(default_factory=list)

    def iter(self) -> Iterator[XmlElement]:
        """This element and all its descendants, in document order."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.children))

    def resolve(self, qname: str) -> tuple[str, str]:
        """The namespace and the local name of a QName in a value; an empty namespace where it has none."""
        prefix, colon, local = qname.strip().rpartition(":")
        return self.scope.get(prefix if colon else "", ""), local


def decode_xml(document: bytes) -> str:
    """The text of a document, without its XML declaration.

    Valid UTF-8 is decoded as such whatever the declaration says, because text inside of JSON has been recoded.
    Raises: InvalidDocument.
    """
    try:
        if document.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = document.decode("utf-16")
        else:
            text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        declared = _ENCODING.match(document)
        name = declared[1].decode() if declared else "UTF-8"
        if not _EIGHT_BIT.fullmatch(name):
            line = document.count(b"\n", 0, error.start) + 1
            raise InvalidDocument(f"the document is not text in {name}", DocumentLocation(line=line)) from None
        try:
            text = document.decode(name)
        except (UnicodeDecodeError, LookupError):
            raise InvalidDocument(f"the document is not text in {name}", DocumentLocation(line=1)) from None
    # Keeps its line breaks, so that the numbers of later lines do not change.
    return _DECLARATION.sub(lambda found: "\n" * found[0].count("\n"), text, count=1)


def parse_xml(text: str) -> XmlElement:
    """The root of a well-formed document; O(length).

    Raises: InvalidDocument, also for any document type declaration.
    """
    if not text.strip():
        raise InvalidDocument("the document is empty", DocumentLocation(line=1))
    return _XmlReader(text).parse()


def location_at(text: str, start: int | None) -> DocumentLocation | None:
    """The line of an offset in bytes of UTF-8, with the text from there to the end of the line."""
    if start is None:
        return None
    data = text.encode()
    end = data.find(b"\n", start)
    line_text = data[start : min(end if end >= 0 else len(data), start + 4 * MAX_FRAGMENT)].decode("utf-8", "ignore")
    return DocumentLocation(line=data.count(b"\n", 0, start) + 1, fragment=line_text.strip()[:MAX_FRAGMENT])


class _XmlReader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._open_elements: list[XmlElement] = []
        self._root: XmlElement | None = None
        self._count = 0
        self._scopes: list[Mapping[str, str]] = [{"xml": XML}]
        self._declared_prefixes: dict[str, str] = {}
        # An encoding given here overrides the declared one.
        self._parser = parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._on_doctype
        parser.StartNamespaceDeclHandler = self._on_prefix
        parser.StartElementHandler = self._on_start
        parser.EndElementHandler = self._on_end

    def parse(self) -> XmlElement:
        try:
            self._parser.Parse(self._text.encode("utf-8"), True)
        except expat.ExpatError as error:
            reason = expat.errors.messages.get(error.code, "") if isinstance(error.code, int) else ""
            raise InvalidDocument(
                f"the document is not well-formed XML: {reason or error}", self._error_location()
            ) from None
        except UnicodeEncodeError:
            raise InvalidDocument(
                "the document holds characters that XML does not allow", DocumentLocation(line=1)
            ) from None
        assert self._root is not None
        return self._root

    def _location(self) -> DocumentLocation | None:
        return location_at(self._text, self._parser.CurrentByteIndex)

    def _error_location(self) -> DocumentLocation:
        """The location where the parser stopped, with the text before it on the same line."""
        data, error_offset = self._text.encode(), max(self._parser.ErrorByteIndex, 0)
        start = max(data.rfind(b"\n", 0, error_offset) + 1, error_offset - MAX_FRAGMENT // 2)
        location = location_at(self._text, start)
        return DocumentLocation(
            line=data.count(b"\n", 0, error_offset) + 1, fragment=location.fragment if location else None
        )

    def _on_doctype(self, *_: object) -> None:
        start = self._text.encode().rfind(b"<!DOCTYPE", 0, self._parser.CurrentByteIndex)
        raise InvalidDocument(
            "document type declarations and entities are not allowed", location_at(self._text, max(start, 0))
        )

    def _on_prefix(self, prefix: str | None, uri: str | None) -> None:
        self._declared_prefixes[prefix or ""] = uri or ""

    def _on_start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > _MAX_ELEMENTS or len(self._open_elements) >= _MAX_DEPTH:
            limit_text = f"{_MAX_ELEMENTS} elements" if self._count > _MAX_ELEMENTS else f"{_MAX_DEPTH} levels"
            raise InvalidDocument(f"the document has more than {limit_text}", self._location())
        scope = self._scopes[-1]
        if self._declared_prefixes:
            scope, self._declared_prefixes = {**scope, **self._declared_prefixes}, {}
        self._scopes.append(scope)
        clark_attributes = {_clark_name(name): value for name, value in attributes.items()}
        node = XmlElement(_clark_name(tag), clark_attributes, self._parser.CurrentByteIndex, scope)
        if self._open_elements:
            self._open_elements[-1].children.append(node)
        else:
            self._root = node
        self._open_elements.append(node)

    def _on_end(self, _: str) -> None:
        self._open_elements.pop()
        self._scopes.pop()


def _clark_name(name: str) -> str:
    uri, separator, local = name.rpartition(" ")
    return f"{{{uri}}}{local}" if separator else name

"""A parsed schema: its types in a list, and each use of a type as an index with its location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.domain.formats.contract import MAX_FRAGMENT, DocumentLocation, InvalidDocument
from annals.domain.values import json_text

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_MAX_NAME_LENGTH: Final = 100
#: Primitive types that a reader of the same type accepts without further checks; bytes may be decimals.
TYPES_WITHOUT_DETAILS: Final = PRIMITIVE_TYPES - {"bytes"}
NAMED_TYPES: Final = frozenset({"record", "enum", "fixed"})


class TypeReference(NamedTuple):
    """A use of a type. type: its index in `AvroSchema.types`."""

    type: int
    pointer: str


class RecordField(NamedTuple):
    """A field of a record. required: it has no default, so the writer's data must contain it."""

    name: str
    aliases: tuple[str, ...]
    type: TypeReference
    required: bool
    pointer: str


@dataclass(frozen=True, slots=True)
class AvroType:
    """One type with the properties of its kind. All uses of a plain primitive type share one value.

    kind: a primitive, `record`, `enum`, `fixed`, `array`, `map` or `union`. name, aliases: fullnames. parts: the items
    of an array, the values of a map, the branches of a union. default: the symbol that replaces unknown symbols of an
    enum. decimal: precision and scale, for a valid logical type `decimal`. plain_kinds: of the branches of a union, if
    none of them has details to compare; otherwise None.
    """

    kind: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    fields: tuple[RecordField, ...] = ()
    parts: tuple[TypeReference, ...] = ()
    symbols: tuple[str, ...] = ()
    default: str | None = None
    size: int = 0
    decimal: tuple[int, int] | None = None
    plain_kinds: frozenset[str] | None = None

    @property
    def label(self) -> str:
        """The name of the type in error messages."""
        return f"{self.kind} {shorten_name(self.name)}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A parsed Avro document. source: its bytes, from which errors quote fragments."""

    types: tuple[AvroType, ...]
    root: TypeReference
    source: bytes


class SourceLocations:
    """Finds locations in one document, which is decoded at the first request."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._document: Any = None

    def location(self, pointer: str) -> DocumentLocation:
        """The location of a pointer, with the JSON text there."""
        if self._document is None:
            self._document = json_text.loads(self._source)
        value = self._document
        for token in pointer.split("/")[1:]:
            value = value[int(token)] if isinstance(value, list) else value[token]
        return DocumentLocation(pointer=pointer, fragment=json_fragment(value))


def shorten_name(name: str) -> str:
    """A name shortened for an error message."""
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[:_MAX_NAME_LENGTH]}..."


def json_fragment(value: Any) -> str:
    """A value as JSON, shortened for an error message."""
    return json_text.dumps(value).decode()[:MAX_FRAGMENT]


def invalid_document(text: str, pointer: str, value: Any) -> InvalidDocument:
    """The error about the value at a pointer."""
    return InvalidDocument(text, DocumentLocation(pointer=pointer, fragment=json_fragment(value)))

"""A schema as data: its types in a list, each use of one as an index and the place where it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from domain.formats.contract import MAX_FRAGMENT, DocumentLocation, InvalidDocument
from domain.values import json_text

PRIMITIVE_TYPES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_SHORT: Final = 100
NAMED_TYPES: Final = frozenset({"record", "enum", "fixed"})


class TypeReference(NamedTuple):
    """A type where a schema uses it. type: its index in `Schema.types`."""

    type: int
    pointer: str


class RecordField(NamedTuple):
    """A field of a record. required: a reader that does not find it in the data has no default to take."""

    name: str
    aliases: tuple[str, ...]
    type: TypeReference
    required: bool
    pointer: str


@dataclass(frozen=True, slots=True)
class AvroType:
    """One type, with what its kind has. A primitive that says nothing else is one wherever a schema uses it.

    kind: a primitive, `record`, `enum`, `fixed`, `array`, `map` or `union`. name, aliases: fullnames. parts: the items
    of an array, the values of a map, the branches of a union. default: the symbol for symbols that an enum lacks.
    decimal: precision and scale, where the logical type `decimal` holds.
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

    @property
    def label(self) -> str:
        """How an error names it."""
        return f"{self.kind} {shorten_name(self.name)}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A document of the format Avro, as it was read. source: its bytes, for the fragments that errors repeat."""

    types: tuple[AvroType, ...]
    root: TypeReference
    source: bytes


class SourceLocations:
    """Spots of one document, which is decoded when the first is asked for."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._document: Any = None

    def spot(self, pointer: str) -> DocumentLocation:
        """The place that a pointer names, with what stands there."""
        if self._document is None:
            self._document = json_text.loads(self._source)
        value = self._document
        for token in pointer.split("/")[1:]:
            value = value[int(token)] if isinstance(value, list) else value[token]
        return DocumentLocation(pointer=pointer, fragment=json_fragment(value))


def shorten_name(name: str) -> str:
    """A name as a sentence repeats it: nobody wants a megabyte of it."""
    return name if len(name) <= _SHORT else f"{name[:_SHORT]}..."


def json_fragment(value: Any) -> str:
    """JSON as an error repeats it."""
    return json_text.dumps(value).decode()[:MAX_FRAGMENT]


def invalid_document(text: str, pointer: str, value: Any) -> InvalidDocument:
    """The error about what stands at a pointer."""
    return InvalidDocument(text, DocumentLocation(pointer=pointer, fragment=json_fragment(value)))

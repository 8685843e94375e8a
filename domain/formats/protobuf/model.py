"""A Protobuf document in a form for comparisons: types by full name, fields by number, features resolved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.protobuf.source import line_fragment


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field or an extension, as it is on the wire.

    kind: a scalar type, `enum`, `message`, `group` (delimited), or `opaque` for a type from an unavailable import.
    type: the full name of that type. implicit: without presence, so a zero is not written. default: as declared.
    """

    number: int
    name: str
    kind: str
    type: str = ""
    repeated: bool = False
    required: bool = False
    implicit: bool = False
    packed: bool = False
    oneof: str = ""
    default: str | None = None
    extension: bool = False
    line: int | None = None


class ReservedRange(NamedTuple):
    """Reserved numbers, both ends included."""

    first: int
    last: int
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Reservations:
    """Reserved numbers, as sorted ranges without overlap, and reserved names with their lines."""

    ranges: tuple[ReservedRange, ...] = ()
    names: Mapping[str, int | None] = field(default_factory=dict)

    def range_of(self, number: int) -> ReservedRange | None:
        """The range that contains a number; None where none does. O(log ranges)."""
        index = bisect_right(self.ranges, number, key=lambda one: one.first) - 1
        return self.ranges[index] if index >= 0 and number <= self.ranges[index].last else None


@dataclass(frozen=True, slots=True)
class ProtoMessage:
    """A message. is_map_entry: it is a map entry. fields: including its extensions in the same document."""

    name: str
    fields: Mapping[int, ProtoField]
    reserved: Reservations = Reservations()
    is_map_entry: bool = False
    line: int | None = None


class ProtoEnumValue(NamedTuple):
    """A value of an enum: the first name of a number."""

    name: str
    line: int | None


@dataclass(frozen=True, slots=True)
class ProtoEnum:
    """An enum. numbers: by name, including aliases. first: the number that an absent field has."""

    name: str
    values: Mapping[int, ProtoEnumValue]
    numbers: Mapping[str, int]
    first: int
    is_closed: bool
    reserved: Reservations = Reservations()
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ProtoMethod:
    """A method of a service. types: full names of input and output. streams: whether each is a stream."""

    name: str
    types: tuple[str, str]
    streams: tuple[bool, bool]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ProtoService:
    name: str
    methods: Mapping[str, ProtoMethod]
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ProtoDocument:
    """A valid document.

    messages: including messages of other documents that this one extends, with the extensions only. opaque: full names
    of types that are known by name only. descriptor: the compiled document without lines. imports, unchecked: parts
    that the descriptor lacks because an import is unavailable: the paths, and the options that it would define.
    """

    package: str
    package_line: int | None
    messages: Mapping[str, ProtoMessage]
    enums: Mapping[str, ProtoEnum]
    services: Mapping[str, ProtoService]
    opaque: frozenset[str]
    descriptor: bytes
    imports: tuple[str, ...]
    unchecked: tuple[str, ...]
    lines: tuple[str, ...]

    def location(self, line: int | None) -> DocumentLocation | None:
        return None if line is None else DocumentLocation(line=line, fragment=line_fragment(self.lines, line))

"""Converts a compiled document to `ProtoDocument`, which comparisons use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf import descriptor_pb2 as d

from domain.formats.protobuf import features
from domain.formats.protobuf.features import Features
from domain.formats.protobuf.model import (
    ProtoDocument,
    ProtoEnum,
    ProtoEnumValue,
    ProtoField,
    ProtoMessage,
    ProtoMethod,
    ProtoService,
    Reservations,
    ReservedRange,
)

_Path = tuple[int, ...]
_KINDS: Final = {number: name.removeprefix("TYPE_").lower() for name, number in d.FieldDescriptorProto.Type.items()}
_UNPACKED: Final = frozenset(("string", "bytes", "message", "group", "opaque"))


def document_from_descriptor(
    file: d.FileDescriptorProto, text: str, imports: Iterable[str], opaque: frozenset[str], unchecked: tuple[str, ...]
) -> ProtoDocument:
    """The document in the form for comparisons. O(its elements)."""
    reading = _DescriptorReader(file, opaque)
    reading.read()
    lines = reading.lines
    file.ClearField("source_code_info")
    return ProtoDocument(
        package=file.package,
        package_line=lines.get((2,)),
        messages=reading.messages,
        enums=reading.enums,
        services=reading.services,
        opaque=opaque,
        descriptor=file.SerializeToString(),
        imports=tuple(imports),
        unchecked=unchecked,
        lines=tuple(text.split("\n")),
    )


class _DescriptorReader:
    """Collects the elements of a document."""

    def __init__(self, file: d.FileDescriptorProto, opaque: frozenset[str]) -> None:
        self._file, self._opaque = file, opaque
        self.lines = {tuple(one.path): one.span[0] + 1 for one in file.source_code_info.location}
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: dict[str, ProtoEnum] = {}
        self.services: dict[str, ProtoService] = {}
        self._extensions: dict[str, dict[int, ProtoField]] = {}

    def read(self) -> None:
        file, held = self._file, features.features_of_file(self._file)
        self._types(file.package, (4,), file.message_type, (5,), file.enum_type, held)
        self._extend(file.package, (7,), file.extension, held)
        for index, service in enumerate(file.service):
            name = _join(file.package, service.name)
            self.services[name] = ProtoService(name, self._methods(service, (6, index)), self.lines.get((6, index)))
        for name, extensions in self._extensions.items():
            known = self.messages.get(name, ProtoMessage(name, {}))
            fields = {**extensions, **known.fields}
            self.messages[name] = ProtoMessage(name, fields, known.reserved, known.entry, known.line)

    def _types(
        self,
        scope: str,
        at: _Path,
        messages: Iterable[d.DescriptorProto],
        enums_at: _Path,
        enums: Iterable[d.EnumDescriptorProto],
        held: Features,
    ) -> None:
        for index, message in enumerate(messages):
            self._message(_join(scope, message.name), (*at, index), message, held)
        for index, enum in enumerate(enums):
            self._enum(_join(scope, enum.name), (*enums_at, index), enum, held)

    def _message(self, name: str, at: _Path, message: d.DescriptorProto, held: Features) -> None:
        held = held.override_with(message.options.features)
        entry = message.options.map_entry
        entries = {f".{name}.{one.name}" for one in message.nested_type if one.options.map_entry}
        fields = {}
        for index, field in enumerate(message.field):
            oneof = field.HasField("oneof_index") and not field.proto3_optional
            holder = message.oneof_decl[field.oneof_index] if oneof else None
            fields[field.number] = self._field(
                field,
                (*at, 2, index),
                held if holder is None else held.override_with(holder.options.features),
                prefixed=entry or field.type_name in entries,
                oneof="" if holder is None else holder.name,
            )
        ranges = (
            ReservedRange(one.start, one.end - 1, self.lines.get((*at, 9, i)))
            for i, one in enumerate(message.reserved_range)
        )
        names = {one: self.lines.get((*at, 10, index)) for index, one in enumerate(message.reserved_name)}
        reserved = Reservations(tuple(sorted(ranges)), names)
        self.messages[name] = ProtoMessage(name, fields, reserved, entry, self.lines.get(at))
        self._types(name, (*at, 3), message.nested_type, (*at, 4), message.enum_type, held)
        self._extend(name, (*at, 6), message.extension, held)

    def _extend(self, scope: str, at: _Path, extensions: Iterable[d.FieldDescriptorProto], held: Features) -> None:
        for index, extension in enumerate(extensions):
            read = self._field(extension, (*at, index), held, scope)
            self._extensions.setdefault(extension.extendee.removeprefix("."), {})[read.number] = read

    def _field(
        self,
        field: d.FieldDescriptorProto,
        at: _Path,
        held: Features,
        scope: str = "",
        prefixed: bool = False,
        oneof: str = "",
    ) -> ProtoField:
        """The field. scope: of an extension. prefixed: it is a map or inside of one, and therefore never delimited."""
        held = held.override_with(field.options.features)
        kind, name = _KINDS[field.type], field.type_name.removeprefix(".")
        repeated = field.label == d.FieldDescriptorProto.LABEL_REPEATED
        extension = bool(field.extendee)
        if kind == "message" and held.message == d.FeatureSet.DELIMITED and not prefixed:
            kind = "group"
        if name in self._opaque:
            kind = "opaque"
        plain = not repeated and not extension and not field.proto3_optional and kind not in ("message", "group")
        required = field.label == d.FieldDescriptorProto.LABEL_REQUIRED or held.presence == d.FeatureSet.LEGACY_REQUIRED
        packs = field.options.packed if field.options.HasField("packed") else held.repeated == d.FeatureSet.PACKED
        return ProtoField(
            number=field.number,
            name=_join(scope, field.name) if extension else field.name,
            kind=kind,
            type=name,
            repeated=repeated,
            required=required and not repeated and not extension,
            implicit=plain and held.presence == d.FeatureSet.IMPLICIT and not field.HasField("oneof_index"),
            packed=repeated and packs and kind not in _UNPACKED,
            oneof=oneof,
            default=field.default_value if field.HasField("default_value") else None,
            extension=extension,
            line=self.lines.get(at),
        )

    def _enum(self, name: str, at: _Path, enum: d.EnumDescriptorProto, held: Features) -> None:
        held = held.override_with(enum.options.features)
        values: dict[int, ProtoEnumValue] = {}
        for index, value in enumerate(enum.value):
            values.setdefault(value.number, ProtoEnumValue(value.name, self.lines.get((*at, 2, index))))
        ranges = (
            ReservedRange(one.start, one.end, self.lines.get((*at, 4, i))) for i, one in enumerate(enum.reserved_range)
        )
        self.enums[name] = ProtoEnum(
            name=name,
            values=values,
            numbers={value.name: value.number for value in enum.value},
            first=enum.value[0].number,
            closed=held.enum == d.FeatureSet.CLOSED,
            reserved=Reservations(
                tuple(sorted(ranges)),
                {one: self.lines.get((*at, 5, index)) for index, one in enumerate(enum.reserved_name)},
            ),
            line=self.lines.get(at),
        )

    def _methods(self, service: d.ServiceDescriptorProto, at: _Path) -> dict[str, ProtoMethod]:
        return {
            one.name: ProtoMethod(
                one.name,
                (one.input_type.removeprefix("."), one.output_type.removeprefix(".")),
                (one.client_streaming, one.server_streaming),
                self.lines.get((*at, 2, index)),
            )
            for index, one in enumerate(service.method)
        }


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name

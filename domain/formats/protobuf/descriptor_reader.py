"""Converts a compiled document to `ProtoDocument`, which comparisons use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf import descriptor_pb2 as d

from annals.domain.formats.protobuf import features
from annals.domain.formats.protobuf.features import Features
from annals.domain.formats.protobuf.model import (
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
_UNPACKED_KINDS: Final = frozenset(("string", "bytes", "message", "group", "opaque"))


def document_from_descriptor(
    file: d.FileDescriptorProto,
    text: str,
    imports: Iterable[str],
    opaque_types: frozenset[str],
    unchecked: tuple[str, ...],
) -> ProtoDocument:
    """The document in the form for comparisons. O(its elements)."""
    reader = _DescriptorReader(file, opaque_types)
    reader.read()
    lines = reader.lines
    file.ClearField("source_code_info")
    return ProtoDocument(
        package=file.package,
        package_line=lines.get((2,)),
        messages=reader.messages,
        enums=reader.enums,
        services=reader.services,
        opaque=opaque_types,
        descriptor=file.SerializeToString(),
        imports=tuple(imports),
        unchecked=unchecked,
        lines=tuple(text.split("\n")),
    )


class _DescriptorReader:
    """Collects the elements of a document."""

    def __init__(self, file: d.FileDescriptorProto, opaque: frozenset[str]) -> None:
        self._file, self._opaque = file, opaque
        self.lines = {tuple(location.path): location.span[0] + 1 for location in file.source_code_info.location}
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: dict[str, ProtoEnum] = {}
        self.services: dict[str, ProtoService] = {}
        self._extensions: dict[str, dict[int, ProtoField]] = {}

    def read(self) -> None:
        file, feature_set = self._file, features.features_of_file(self._file)
        self._read_types(file.package, (4,), file.message_type, (5,), file.enum_type, feature_set)
        self._read_extensions(file.package, (7,), file.extension, feature_set)
        for index, service in enumerate(file.service):
            name = _join(file.package, service.name)
            self.services[name] = ProtoService(
                name, self._read_methods(service, (6, index)), self.lines.get((6, index))
            )
        for name, extensions in self._extensions.items():
            message = self.messages.get(name, ProtoMessage(name, {}))
            fields = {**extensions, **message.fields}
            self.messages[name] = ProtoMessage(name, fields, message.reserved, message.is_map_entry, message.line)

    def _read_types(
        self,
        scope: str,
        path: _Path,
        messages: Iterable[d.DescriptorProto],
        enums_path: _Path,
        enums: Iterable[d.EnumDescriptorProto],
        feature_set: Features,
    ) -> None:
        for index, message in enumerate(messages):
            self._read_message(_join(scope, message.name), (*path, index), message, feature_set)
        for index, enum in enumerate(enums):
            self._read_enum(_join(scope, enum.name), (*enums_path, index), enum, feature_set)

    def _read_message(self, name: str, path: _Path, message: d.DescriptorProto, feature_set: Features) -> None:
        feature_set = feature_set.override_with(message.options.features)
        entry = message.options.map_entry
        entries = {f".{name}.{element.name}" for element in message.nested_type if element.options.map_entry}
        fields = {}
        for index, field in enumerate(message.field):
            oneof = field.HasField("oneof_index") and not field.proto3_optional
            oneof_declaration = message.oneof_decl[field.oneof_index] if oneof else None
            fields[field.number] = self._read_field(
                field,
                (*path, 2, index),
                feature_set
                if oneof_declaration is None
                else feature_set.override_with(oneof_declaration.options.features),
                is_map_part=entry or field.type_name in entries,
                oneof="" if oneof_declaration is None else oneof_declaration.name,
            )
        ranges = (
            ReservedRange(element.start, element.end - 1, self.lines.get((*path, 9, range_index)))
            for range_index, element in enumerate(message.reserved_range)
        )
        names = {element: self.lines.get((*path, 10, index)) for index, element in enumerate(message.reserved_name)}
        reserved = Reservations(tuple(sorted(ranges)), names)
        self.messages[name] = ProtoMessage(name, fields, reserved, entry, self.lines.get(path))
        self._read_types(name, (*path, 3), message.nested_type, (*path, 4), message.enum_type, feature_set)
        self._read_extensions(name, (*path, 6), message.extension, feature_set)

    def _read_extensions(
        self, scope: str, path: _Path, extensions: Iterable[d.FieldDescriptorProto], feature_set: Features
    ) -> None:
        for index, extension in enumerate(extensions):
            extension_field = self._read_field(extension, (*path, index), feature_set, scope)
            self._extensions.setdefault(extension.extendee.removeprefix("."), {})[extension_field.number] = (
                extension_field
            )

    def _read_field(
        self,
        field: d.FieldDescriptorProto,
        path: _Path,
        feature_set: Features,
        scope: str = "",
        is_map_part: bool = False,
        oneof: str = "",
    ) -> ProtoField:
        """The field.

        scope: of an extension. is_map_part: it is a map or inside of one, and therefore never delimited.
        """
        feature_set = feature_set.override_with(field.options.features)
        kind, name = _KINDS[field.type], field.type_name.removeprefix(".")
        repeated = field.label == d.FieldDescriptorProto.LABEL_REPEATED
        extension = bool(field.extendee)
        if kind == "message" and feature_set.message == d.FeatureSet.DELIMITED and not is_map_part:
            kind = "group"
        if name in self._opaque:
            kind = "opaque"
        may_be_implicit = (
            not repeated and not extension and not field.proto3_optional and kind not in ("message", "group")
        )
        required = (
            field.label == d.FieldDescriptorProto.LABEL_REQUIRED or feature_set.presence == d.FeatureSet.LEGACY_REQUIRED
        )
        is_packed = (
            field.options.packed if field.options.HasField("packed") else feature_set.repeated == d.FeatureSet.PACKED
        )
        return ProtoField(
            number=field.number,
            name=_join(scope, field.name) if extension else field.name,
            kind=kind,
            type=name,
            repeated=repeated,
            required=required and not repeated and not extension,
            implicit=may_be_implicit
            and feature_set.presence == d.FeatureSet.IMPLICIT
            and not field.HasField("oneof_index"),
            packed=repeated and is_packed and kind not in _UNPACKED_KINDS,
            oneof=oneof,
            default=field.default_value if field.HasField("default_value") else None,
            extension=extension,
            line=self.lines.get(path),
        )

    def _read_enum(self, name: str, path: _Path, enum: d.EnumDescriptorProto, feature_set: Features) -> None:
        feature_set = feature_set.override_with(enum.options.features)
        values: dict[int, ProtoEnumValue] = {}
        for index, value in enumerate(enum.value):
            values.setdefault(value.number, ProtoEnumValue(value.name, self.lines.get((*path, 2, index))))
        ranges = (
            ReservedRange(element.start, element.end, self.lines.get((*path, 4, range_index)))
            for range_index, element in enumerate(enum.reserved_range)
        )
        self.enums[name] = ProtoEnum(
            name=name,
            values=values,
            numbers={value.name: value.number for value in enum.value},
            first=enum.value[0].number,
            is_closed=feature_set.enum == d.FeatureSet.CLOSED,
            reserved=Reservations(
                tuple(sorted(ranges)),
                {element: self.lines.get((*path, 5, index)) for index, element in enumerate(enum.reserved_name)},
            ),
            line=self.lines.get(path),
        )

    def _read_methods(self, service: d.ServiceDescriptorProto, path: _Path) -> dict[str, ProtoMethod]:
        return {
            method.name: ProtoMethod(
                method.name,
                (method.input_type.removeprefix("."), method.output_type.removeprefix(".")),
                (method.client_streaming, method.server_streaming),
                self.lines.get((*path, 2, index)),
            )
            for index, method in enumerate(service.method)
        }


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name

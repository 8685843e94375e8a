"""Protobuf: differences between an older and a newer document, as Confluent's registry finds and judges them.

Only what is on the wire counts: fields by number, kinds of values, exclusive alternatives. Names do not, but for those
of messages.
Rules CSR-805, CSR-806, CSR-808.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor_pb2 import DescriptorProto, FeatureSet, FieldDescriptorProto, FileDescriptorProto

from annals.domain.confluent.compatibility.difference import Difference

_TYPE = FieldDescriptorProto
#: Kinds of values that the wire does not tell apart, or that readers convert.
_SCALAR_KINDS: Final = {
    **dict.fromkeys(
        (_TYPE.TYPE_INT32, _TYPE.TYPE_INT64, _TYPE.TYPE_UINT32, _TYPE.TYPE_UINT64, _TYPE.TYPE_BOOL, _TYPE.TYPE_ENUM),
        "GENERAL_NUMBER",
    ),
    **dict.fromkeys((_TYPE.TYPE_SINT32, _TYPE.TYPE_SINT64), "SIGNED_NUMBER"),
    **dict.fromkeys((_TYPE.TYPE_STRING, _TYPE.TYPE_BYTES), "STRING_OR_BYTES"),
    **dict.fromkeys((_TYPE.TYPE_FIXED32, _TYPE.TYPE_SFIXED32), "FIXED32"),
    **dict.fromkeys((_TYPE.TYPE_FIXED64, _TYPE.TYPE_SFIXED64), "FIXED64"),
    _TYPE.TYPE_FLOAT: "FLOAT",
    _TYPE.TYPE_DOUBLE: "DOUBLE",
}
_TEXTS: Final = {
    "PACKAGE_CHANGED": "The package at '{path}' in the {reader} schema does not match the package in the {writer}"
    " schema",
    "MESSAGE_REMOVED": "The {reader} schema is missing a MESSAGE type at path '{path}' in the {writer} schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the {reader} schema does not match the {writer}"
    " schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{path}' in the {reader} schema does not match its"
    " kind in the {writer} schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{path}' in the {reader} schema does not match its"
    " type in the {writer} schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{path}' in the {reader} schema does not"
    " match its label in the {writer} schema",
    "REQUIRED_FIELD_ADDED": "A required field at path '{path}' in the {reader} schema is missing in the {writer}"
    " schema",
    "REQUIRED_FIELD_REMOVED": "The {reader} schema is missing a required field at path '{path}' in the {writer} schema",
    "ONEOF_FIELD_REMOVED": "The {reader} schema is missing a oneof field at path '{path}' in the {writer} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{path}' in the {reader} schema are outside"
    " a oneof in the {writer} schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{path}' in the {reader} schema is outside an"
    " existing oneof in the {writer} schema",
}


@dataclass(frozen=True, slots=True)
class _Types:
    """The messages of a document and its imports, by full name; the package of each."""

    root: FileDescriptorProto
    messages: Mapping[str, DescriptorProto]
    packages: Mapping[str, str]

    def map_entry(self, field: FieldDescriptorProto) -> DescriptorProto | None:
        message = self.messages.get(field.type_name) if field.type == field.TYPE_MESSAGE else None
        return message if message is not None and message.options.map_entry else None

    def local_name(self, full_name: str) -> str:
        """A type's name without its package."""
        package = self.packages.get(full_name, "")
        return full_name.removeprefix(f".{package}.") if package else full_name.removeprefix(".")


def protobuf_differences(
    older: Sequence[FileDescriptorProto], newer: Sequence[FileDescriptorProto]
) -> list[Difference]:
    """The incompatible differences of a newer document from an older one. Each comes first, then its imports."""
    comparison = _DocumentComparison(_read_types(older), _read_types(newer))
    return list(dict.fromkeys(comparison.compare_files()))


class _DocumentComparison:
    def __init__(self, older: _Types, newer: _Types) -> None:
        self._older, self._newer = older, newer
        self._seen: set[tuple[str, str]] = set()

    def compare_files(self) -> Iterator[Difference]:
        older, newer = self._older.root, self._newer.root
        if older.package != newer.package:
            yield _difference("PACKAGE_CHANGED", "#/", f"{older.package} -> {newer.package}")
        yield from self._compare_messages(older.message_type, newer.message_type, _prefix(older), _prefix(newer), "#/")

    def _compare_messages(
        self,
        older: Sequence[DescriptorProto],
        newer: Sequence[DescriptorProto],
        older_scope: str,
        newer_scope: str,
        path: str,
    ) -> Iterator[Difference]:
        newer_by_name = {message.name: message for message in newer if not message.options.map_entry}
        for message in older:
            place = f"{path}{message.name}"
            if message.options.map_entry:
                continue
            if message.name not in newer_by_name:
                yield _difference("MESSAGE_REMOVED", place, message.name)
            else:
                yield from self._compare_message(
                    f"{older_scope}.{message.name}", f"{newer_scope}.{message.name}", place
                )

    def _compare_message(self, older_name: str, newer_name: str, path: str) -> Iterator[Difference]:
        if (older_name, newer_name) in self._seen:
            return
        self._seen.add((older_name, newer_name))
        older, newer = self._older.messages[older_name], self._newer.messages[newer_name]
        older_fields, newer_fields = ({field.number: field for field in one.field} for one in (older, newer))
        yield from _new_exclusions(older, newer, path)
        survivors = {_oneof(older, older_fields[number]) for number in older_fields if number in newer_fields}
        newer_oneofs = {oneof.name for oneof in newer.oneof_decl}
        for number in sorted({*older_fields, *newer_fields}):
            before, after, place = older_fields.get(number), newer_fields.get(number), f"{path}/{number}"
            if after is None and before is not None:
                oneof = _oneof(older, before)
                if oneof and (oneof in newer_oneofs or oneof in survivors):
                    yield _difference("ONEOF_FIELD_REMOVED", f"{path}/{oneof}/{number}", before.name)
                elif not oneof and _is_required(before):
                    yield _difference("REQUIRED_FIELD_REMOVED", place, before.name)
            elif before is None and after is not None:
                if _is_required(after):
                    yield _difference("REQUIRED_FIELD_ADDED", place, after.name)
            elif before is not None and after is not None:
                yield from self._compare_field(before, after, place)
        yield from self._compare_messages(older.nested_type, newer.nested_type, older_name, newer_name, f"{path}/")

    def _compare_field(
        self, before: FieldDescriptorProto, after: FieldDescriptorProto, path: str
    ) -> Iterator[Difference]:
        older_entry, newer_entry = self._older.map_entry(before), self._newer.map_entry(after)
        info = f"{_type_text(before)} -> {_type_text(after)}"
        if (older_entry is None) != (newer_entry is None):
            yield _difference("FIELD_KIND_CHANGED", path, info)
        elif older_entry is not None and newer_entry is not None:
            for older_part, newer_part in zip(older_entry.field, newer_entry.field, strict=True):
                yield from self._compare_types(older_part, newer_part, path)
        else:
            yield from self._compare_types(before, after, path)
            yield from self._compare_labels(before, after, path)

    def _compare_types(
        self, before: FieldDescriptorProto, after: FieldDescriptorProto, path: str
    ) -> Iterator[Difference]:
        older_kind, newer_kind = (_SCALAR_KINDS.get(field.type) for field in (before, after))
        info = f"{_type_text(before)} -> {_type_text(after)}"
        if (older_kind is None) != (newer_kind is None):
            yield _difference("FIELD_KIND_CHANGED", path, info)
        elif older_kind != newer_kind:
            yield _difference("FIELD_SCALAR_KIND_CHANGED", path, info)
        elif older_kind is None:
            yield from self._compare_message_types(before, after, path, info)

    def _compare_message_types(
        self, before: FieldDescriptorProto, after: FieldDescriptorProto, path: str, info: str
    ) -> Iterator[Difference]:
        names = self._older.local_name(before.type_name), self._newer.local_name(after.type_name)
        if names[0] != names[1]:
            yield _difference("FIELD_NAMED_TYPE_CHANGED", path, info)
        elif before.type_name in self._older.messages and after.type_name in self._newer.messages:
            nested = list(self._compare_message(before.type_name, after.type_name, f"#/{names[0]}"))
            yield from nested
            if nested:
                yield _difference("FIELD_NAMED_TYPE_CHANGED", path, info)

    def _compare_labels(
        self, before: FieldDescriptorProto, after: FieldDescriptorProto, path: str
    ) -> Iterator[Difference]:
        kind = _SCALAR_KINDS.get(before.type)
        if kind is None or kind == "STRING_OR_BYTES" or kind != _SCALAR_KINDS.get(after.type):
            return
        labels = _written_label(self._older.root, before), _written_label(self._newer.root, after)
        if None not in labels and labels[0] != labels[1]:
            yield _difference("FIELD_NUMERIC_LABEL_CHANGED", path, f"{before.name}: {labels[0]} -> {labels[1]}")


def _new_exclusions(older: DescriptorProto, newer: DescriptorProto, path: str) -> Iterator[Difference]:
    """The oneofs that make fields exclude each other that did not before."""
    older_fields = {field.number: field for field in older.field}
    for oneof in newer.oneof_decl:
        members = [
            field for field in newer.field if _oneof(newer, field) == oneof.name and field.number in older_fields
        ]
        origins = [_oneof(older, older_fields[field.number]) or f"field {field.number}" for field in members]
        moved = sum(origin.startswith("field ") for origin in origins)
        if len(set(origins)) > 1:
            type = "MULTIPLE_FIELDS_MOVED_TO_ONEOF" if moved > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF"
            yield _difference(type, f"{path}/{oneof.name}", oneof.name)


def _oneof(message: DescriptorProto, field: FieldDescriptorProto) -> str:
    """The name of the oneof of a field, empty for none."""
    is_member = field.HasField("oneof_index") and not field.proto3_optional
    return message.oneof_decl[field.oneof_index].name if is_member else ""


def _is_required(field: FieldDescriptorProto) -> bool:
    """In editions, the label says nothing and the feature is set at the field itself; the compiler permits no other."""
    presence = field.options.features.field_presence
    return bool(field.label == field.LABEL_REQUIRED or presence == FeatureSet.LEGACY_REQUIRED)


def _written_label(file: FileDescriptorProto, field: FieldDescriptorProto) -> str | None:
    """The label that a text has; a text of proto3 leaves it out for fields without presence."""
    if _is_required(field):
        return "required"
    is_written = field.label != field.LABEL_OPTIONAL or file.syntax in ("", "proto2") or field.proto3_optional
    return _TYPE.Label.Name(field.label).removeprefix("LABEL_").lower() if is_written else None


def _read_types(files: Sequence[FileDescriptorProto]) -> _Types:
    messages: dict[str, DescriptorProto] = {}
    packages: dict[str, str] = {}

    def add(message: DescriptorProto, scope: str, package: str) -> None:
        name = f"{scope}.{message.name}"
        messages[name], packages[name] = message, package
        for nested in message.nested_type:
            add(nested, name, package)

    for file in files:
        for message in file.message_type:
            add(message, _prefix(file), file.package)
    return _Types(files[0], messages, packages)


def _prefix(file: FileDescriptorProto) -> str:
    return f".{file.package}" if file.package else ""


def _type_text(field: FieldDescriptorProto) -> str:
    return str(field.type_name or _TYPE.Type.Name(field.type).removeprefix("TYPE_").lower())


def _difference(type: str, path: str, info: str) -> Difference:
    return Difference(type, path, _TEXTS[type].replace("{path}", path), info)

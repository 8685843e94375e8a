"""The normalized form of a Protobuf descriptor: everything whose order has no meaning is sorted (CSR-416)."""

from __future__ import annotations

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto


def normalize_descriptor(descriptor: FileDescriptorProto) -> FileDescriptorProto:
    """A copy without comments, with sorted imports, fields, values and ranges."""
    normal = FileDescriptorProto()
    normal.CopyFrom(descriptor)
    normal.ClearField("source_code_info")
    public = {normal.dependency[index] for index in normal.public_dependency}
    weak = {normal.dependency[index] for index in normal.weak_dependency}
    normal.dependency.sort()
    normal.public_dependency[:] = [index for index, name in enumerate(normal.dependency) if name in public]
    normal.weak_dependency[:] = [index for index, name in enumerate(normal.dependency) if name in weak]
    # Releases of the library before edition 2024 do not have the member.
    getattr(normal, "option_dependency", []).sort()
    for message in normal.message_type:
        _normalize_message(message)
    for enum in normal.enum_type:
        _normalize_enum(enum)
    return normal


def _normalize_message(message: DescriptorProto) -> None:
    message.field.sort(key=lambda field: field.number)
    message.extension.sort(key=lambda field: field.number)
    message.reserved_range.sort(key=lambda one: (one.start, one.end))
    message.extension_range.sort(key=lambda one: (one.start, one.end))
    message.reserved_name.sort()
    for nested in message.nested_type:
        _normalize_message(nested)
    for enum in message.enum_type:
        _normalize_enum(enum)


def _normalize_enum(enum: EnumDescriptorProto) -> None:
    # The first value is the default of open enums and has to stay the first, so only the others are sorted.
    first, *others = enum.value
    others.sort(key=lambda value: (value.number, value.name))
    sorted_values = [first, *others]
    copies = [type(value).FromString(value.SerializeToString()) for value in sorted_values]
    del enum.value[:]
    enum.value.extend(copies)
    enum.reserved_range.sort(key=lambda one: (one.start, one.end))
    enum.reserved_name.sort()

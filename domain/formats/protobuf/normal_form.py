"""The normal form of a Protobuf document."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from google.protobuf import descriptor_pb2 as d

from annals.domain.formats.protobuf.model import ProtoDocument


def normal_form(parsed: ProtoDocument) -> bytes:
    """The document's FileDescriptorProto in a deterministic encoding, after sorting everything without significant
    order.

    It omits comments, layout, the spelling of type names (`Inner` or `.package.Outer.Inner`), `syntax = "proto2"`, and
    a `json_name` or `packed` that equals the default. It sorts imports, types, services, methods, extensions and oneofs
    by name, fields and ranges by number, and the values of an enum by number after its first value, which is its
    default. Unavailable imports and the options that they would define follow as text, in document order. O(n log n).
    """
    file = d.FileDescriptorProto.FromString(parsed.descriptor)
    file.ClearField("name")
    for field in ("dependency", "public_dependency", "weak_dependency", "option_dependency"):
        file.ClearField(field)
    packed_by_default = {"proto3": True, "": False, "proto2": False}.get(file.syntax)
    _sort(file.message_type)
    _sort(file.enum_type)
    _sort(file.extension, _BY_EXTENSION)
    _sort(file.service)
    for service in file.service:
        _sort(service.method)
    for message in file.message_type:
        _normalize_message(message, packed_by_default)
    for enum in file.enum_type:
        _normalize_enum(enum)
    _normalize_fields(file.extension, packed_by_default)
    unsorted_suffix = "".join(f"\0{text}" for text in (*sorted(parsed.imports), *parsed.unchecked))
    encoded: bytes = file.SerializeToString(deterministic=True)
    return encoded + unsorted_suffix.encode()


_BY_NAME: Final = attrgetter("name")
_BY_NUMBER: Final = attrgetter("number")
_BY_START: Final = attrgetter("start")
_BY_EXTENSION: Final = attrgetter("extendee", "number")


def _sort(members: Any, key: Any = _BY_NAME) -> None:
    members.sort(key=key)


def _normalize_message(message: d.DescriptorProto, packed_by_default: bool | None) -> None:
    old_indexes = sorted(range(len(message.oneof_decl)), key=lambda index: message.oneof_decl[index].name)
    new_index_by_old = {old: new for new, old in enumerate(old_indexes)}
    _sort(message.oneof_decl)
    for field in message.field:
        if field.HasField("oneof_index"):
            field.oneof_index = new_index_by_old[field.oneof_index]
    _normalize_fields(message.field, packed_by_default)
    _normalize_fields(message.extension, packed_by_default)
    _sort(message.field, _BY_NUMBER)
    _sort(message.extension, _BY_EXTENSION)
    _sort(message.nested_type)
    _sort(message.enum_type)
    _sort(message.reserved_range, _BY_START)
    _sort(message.extension_range, _BY_START)
    message.reserved_name.sort()
    for nested in message.nested_type:
        _normalize_message(nested, packed_by_default)
    for enum in message.enum_type:
        _normalize_enum(enum)


def _normalize_fields(fields: Sequence[d.FieldDescriptorProto], packed_by_default: bool | None) -> None:
    for field in fields:
        if (
            packed_by_default is not None
            and field.options.HasField("packed")
            and field.options.packed == packed_by_default
        ):
            field.options.ClearField("packed")
            if not field.options.ByteSize():
                field.ClearField("options")


def _normalize_enum(enum: d.EnumDescriptorProto) -> None:
    first, *others = enum.value
    sorted_values = [
        d.EnumValueDescriptorProto.FromString(enum_value.SerializeToString())
        for enum_value in (first, *sorted(others, key=_BY_NUMBER))
    ]
    del enum.value[:]
    enum.value.extend(sorted_values)
    _sort(enum.reserved_range, _BY_START)
    enum.reserved_name.sort()

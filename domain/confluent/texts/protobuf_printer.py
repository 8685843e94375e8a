"""Prints a Protobuf descriptor as the text of a document (CSR-417).

Options that an imported document defines are in a descriptor as bytes without names; they are printed as comments, so
that texts with different ones differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2 as d
from google.protobuf.message import Message

_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}
_SCALARS: Final = {number: name.removeprefix("TYPE_").lower() for name, number in d.FieldDescriptorProto.Type.items()}
_MAX_FIELD: Final = 536870911
_MAX_ENUM: Final = 2147483647
_Path = tuple[int, ...]


def print_descriptor(file: d.FileDescriptorProto, *, with_extensions: bool = True) -> str:
    """The text. with_extensions: include `extend` declarations."""
    return "\n".join(_DescriptorPrinter(file, with_extensions).lines()) + "\n"


class _DescriptorPrinter:
    """Prints one file. Lines are indented by two spaces for each level."""

    def __init__(self, file: d.FileDescriptorProto, with_extensions: bool) -> None:
        self._file = file
        self._with_extensions = with_extensions
        self._is_proto3 = file.syntax == "proto3"
        self._has_labels = file.syntax in ("", "proto2")
        self._comments = {
            tuple(location.path): location.leading_comments
            for location in file.source_code_info.location
            if location.leading_comments
        }

    def lines(self) -> Iterator[str]:
        file = self._file
        if file.syntax == "editions":
            yield f'edition = "{d.Edition.Name(file.edition).removeprefix("EDITION_")}";'
        else:
            yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        yield from _block(self._imports())
        yield from _block(f"option {name} = {value};" for name, value in _options(file.options))
        for index, message in enumerate(file.message_type):
            yield from ("", *self._message(message, (4, index)))
        for index, enum in enumerate(file.enum_type):
            yield from ("", *self._enum(enum, (5, index)))
        if self._with_extensions:
            yield from self._extensions(file.extension, (7,))
        for index, service in enumerate(file.service):
            yield from ("", *self._service(service, (6, index)))

    def _imports(self) -> Iterator[str]:
        for index, name in enumerate(self._file.dependency):
            is_public, is_weak = index in self._file.public_dependency, index in self._file.weak_dependency
            yield f'import {"public " if is_public else "weak " if is_weak else ""}"{name}";'

    def _message(self, message: d.DescriptorProto, path: _Path, head: str | None = None) -> Iterator[str]:
        yield from self._comment(path)
        yield f"{head or f'message {message.name}'} {{"
        yield from _indent(self._message_body(message, path))
        yield "}"

    def _message_body(self, message: d.DescriptorProto, path: _Path) -> Iterator[str]:
        entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
        groups = {field.type_name.rpartition(".")[2] for field in message.field if field.type == field.TYPE_GROUP}
        yield from _reserved(message.reserved_range, message.reserved_name, 1, _MAX_FIELD, self._file.syntax)
        yield from (f"option {name} = {value};" for name, value in _options(message.options))
        for index, field in enumerate(message.field):
            if not field.HasField("oneof_index") or field.proto3_optional:
                yield from self._field(field, (*path, 2, index), message, entries)
        for oneof_index, oneof in enumerate(message.oneof_decl):
            members = [
                (index, field)
                for index, field in enumerate(message.field)
                if field.HasField("oneof_index") and field.oneof_index == oneof_index and not field.proto3_optional
            ]
            if members:
                yield from ("", f"oneof {oneof.name} {{")
                yield from _indent(f"option {name} = {value};" for name, value in _options(oneof.options))
                for index, field in members:
                    yield from _indent(self._field(field, (*path, 2, index), message, entries, is_member=True))
                yield "}"
        for extension_range in message.extension_range:
            yield f"extensions {_range(extension_range.start, extension_range.end - 1, _MAX_FIELD)};"
        for index, nested in enumerate(message.nested_type):
            if nested.name not in entries and nested.name not in groups:
                yield from ("", *self._message(nested, (*path, 3, index)))
        for index, enum in enumerate(message.enum_type):
            yield from ("", *self._enum(enum, (*path, 4, index)))
        if self._with_extensions:
            yield from self._extensions(message.extension, (*path, 6))

    def _field(
        self,
        field: d.FieldDescriptorProto,
        path: _Path,
        message: d.DescriptorProto | None,
        entries: dict[str, d.DescriptorProto],
        *,
        is_member: bool = False,
    ) -> Iterator[str]:
        yield from self._comment(path)
        entry = entries.get(field.type_name.rpartition(".")[2]) if field.type == field.TYPE_MESSAGE else None
        label = "" if is_member or entry is not None else self._label(field)
        if field.type == field.TYPE_GROUP and message is not None:
            name = field.type_name.rpartition(".")[2]
            group = next(nested for nested in message.nested_type if nested.name == name)
            yield from self._message(group, path, f"{label}group {name} = {field.number}")
            return
        type = _type(field) if entry is None else f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
        options = list(_field_options(field))
        suffix = f" [{', '.join(f'{name} = {value}' for name, value in options)}]" if options else ""
        yield f"{label}{type} {field.name} = {field.number}{suffix};"

    def _label(self, field: d.FieldDescriptorProto) -> str:
        is_written = field.label == field.LABEL_REPEATED or self._has_labels or field.proto3_optional
        return f"{_LABELS[field.label]} " if is_written else ""

    def _extensions(self, extensions: Sequence[d.FieldDescriptorProto], path: _Path) -> Iterator[str]:
        for extendee in dict.fromkeys(extension.extendee for extension in extensions):
            yield from ("", f"extend {extendee} {{")
            for index, extension in enumerate(extensions):
                if extension.extendee == extendee:
                    yield from _indent(self._field(extension, (*path, index), None, {}))
            yield "}"

    def _enum(self, enum: d.EnumDescriptorProto, path: _Path) -> Iterator[str]:
        yield from self._comment(path)
        yield f"enum {enum.name} {{"
        yield from _indent(_reserved(enum.reserved_range, enum.reserved_name, 0, _MAX_ENUM, self._file.syntax))
        yield from _indent(f"option {name} = {value};" for name, value in _options(enum.options))
        for index, value in enumerate(enum.value):
            yield from _indent(self._comment((*path, 2, index)))
            options = ", ".join(f"{name} = {text}" for name, text in _options(value.options))
            yield f"  {value.name} = {value.number}{f' [{options}]' if options else ''};"
        yield "}"

    def _service(self, service: d.ServiceDescriptorProto, path: _Path) -> Iterator[str]:
        yield from self._comment(path)
        yield f"service {service.name} {{"
        yield from _indent(f"option {name} = {value};" for name, value in _options(service.options))
        for index, method in enumerate(service.method):
            yield from _indent(self._comment((*path, 2, index)))
            input_stream, output_stream = (
                "stream " if is_stream else "" for is_stream in (method.client_streaming, method.server_streaming)
            )
            head = (
                f"  rpc {method.name} ({input_stream}{method.input_type}) returns ({output_stream}{method.output_type})"
            )
            options = [f"    option {name} = {value};" for name, value in _options(method.options)]
            yield from (f"{head} {{", *options, "  }") if options else (f"{head};",)
        yield "}"

    def _comment(self, path: _Path) -> Iterator[str]:
        text = self._comments.get(path)
        yield from (f"// {line.strip()}".rstrip() for line in text.strip().split("\n")) if text else ()


def _type(field: d.FieldDescriptorProto) -> str:
    return str(field.type_name or _SCALARS[field.type])


def _field_options(field: d.FieldDescriptorProto) -> Iterator[tuple[str, str]]:
    if field.HasField("default_value"):
        is_text = field.type in (field.TYPE_STRING, field.TYPE_BYTES)
        # The compiler has escaped the default of bytes already.
        text = field.default_value if field.type == field.TYPE_BYTES else _escape(field.default_value)
        yield "default", f'"{text}"' if is_text else field.default_value
    if field.HasField("json_name") and field.json_name != _json_name(field.name):
        yield "json_name", f'"{_escape(field.json_name)}"'
    yield from _options(field.options)


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _options(options: Message) -> Iterator[tuple[str, str]]:
    """The names and values of the options that are set."""
    for descriptor, value in options.ListFields():
        if descriptor.name in ("uninterpreted_option", "map_entry"):
            continue
        for one in value if isinstance(value, list) or hasattr(value, "append") else (value,):
            yield descriptor.name, _value(descriptor, one)
    unknown = _unknown_bytes(options)
    if unknown:
        yield f"/* {unknown.hex()} */ deprecated", "false"


def _unknown_bytes(options: Message) -> bytes:
    """The options that the descriptor has without their names."""
    known = type(options).FromString(options.SerializeToString())
    known.DiscardUnknownFields()  # type: ignore[no-untyped-call, unused-ignore]
    whole, without = options.SerializeToString(deterministic=True), known.SerializeToString(deterministic=True)
    return whole[len(without) :] if len(whole) > len(without) else b""


def _value(descriptor: Any, value: Any) -> str:
    if isinstance(value, Message):
        members = (f"{name.name}: {_value(name, part)}" for name, part in value.ListFields())
        return f"{{ {', '.join(members)} }}"
    if descriptor.enum_type is not None:
        return str(descriptor.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{_escape(value)}"' if isinstance(value, str) else str(value)


def _reserved(ranges: Iterable[Any], names: Sequence[str], ends_after: int, highest: int, syntax: str) -> Iterator[str]:
    """ends_after: 1 where the end of a range is the number after its last one."""
    texts = [_range(one.start, one.end - ends_after, highest) for one in ranges]
    if texts:
        yield f"reserved {', '.join(texts)};"
    if names:
        quote = "" if syntax == "editions" else '"'
        yield f"reserved {', '.join(f'{quote}{name}{quote}' for name in names)};"


def _range(first: int, last: int, highest: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last >= highest else last}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")


def _block(lines: Iterable[str]) -> Iterator[str]:
    """Lines after an empty one; nothing if there are none."""
    texts = list(lines)
    yield from ("", *texts) if texts else ()


def _indent(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)

"""Prints a Protobuf descriptor as the text of a document (CSR-417).

Options that an imported document defines are in a descriptor as bytes without names; they are printed as comments, so
that texts with different ones differ.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
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
        yield from _block(self._types(file.message_type, file.enum_type, (), 4, 5))
        if self._with_extensions:
            yield from _block(self._extensions(file.extension, (7,)))
        services = (self._service(service, (6, index)) for index, service in enumerate(file.service))
        yield from _block(chain.from_iterable(services))

    def _imports(self) -> Iterator[str]:
        for index, name in enumerate(self._file.dependency):
            is_public, is_weak = index in self._file.public_dependency, index in self._file.weak_dependency
            yield f'import {"public " if is_public else "weak " if is_weak else ""}"{name}";'

    def _types(
        self,
        messages: Sequence[d.DescriptorProto],
        enums: Sequence[d.EnumDescriptorProto],
        path: _Path,
        message_field: int,
        enum_field: int,
        left_out: Container[str] = (),
    ) -> Iterator[str]:
        """The messages, then the enums, without empty lines between them, as Confluent's registry writes them."""
        for index, message in enumerate(messages):
            if message.name not in left_out:
                yield from self._message(message, (*path, message_field, index))
        for index, enum in enumerate(enums):
            yield from self._enum(enum, (*path, enum_field, index))

    def _message(self, message: d.DescriptorProto, path: _Path, head: str | None = None) -> Iterator[str]:
        yield from self._comment(path)
        yield from _braces(head or f"message {message.name}", self._message_body(message, path))

    def _message_body(self, message: d.DescriptorProto, path: _Path) -> Iterator[str]:
        entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
        groups = {field.type_name.rpartition(".")[2] for field in message.field if field.type == field.TYPE_GROUP}
        ranges = (_range(one.start, one.end - 1, _MAX_FIELD) for one in message.extension_range)
        fields = (
            self._field(field, (*path, 2, index), message, entries)
            for index, field in enumerate(message.field)
            if not field.HasField("oneof_index") or field.proto3_optional
        )
        yield from _sections(
            _reserved(message.reserved_range, message.reserved_name, 1, _MAX_FIELD, self._file.syntax),
            (f"option {name} = {value};" for name, value in _options(message.options)),
            chain.from_iterable(fields),
            self._oneofs(message, path, entries),
            (f"extensions {text};" for text in ranges),
            self._extensions(message.extension, (*path, 6)) if self._with_extensions else (),
            self._types(message.nested_type, message.enum_type, path, 3, 4, {*entries, *groups}),
        )

    def _oneofs(self, message: d.DescriptorProto, path: _Path, entries: dict[str, d.DescriptorProto]) -> Iterator[str]:
        for oneof_index, oneof in enumerate(message.oneof_decl):
            members = [
                self._field(field, (*path, 2, index), message, entries, is_member=True)
                for index, field in enumerate(message.field)
                if field.HasField("oneof_index") and field.oneof_index == oneof_index and not field.proto3_optional
            ]
            if members:
                options = (f"option {name} = {value};" for name, value in _options(oneof.options))
                yield from _braces(f"oneof {oneof.name}", _sections(options, chain.from_iterable(members)))

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
            yield f"extend {extendee} {{"
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
    """The names and values of the options that are set, by name: a descriptor does not have their order."""
    for descriptor, value in sorted(options.ListFields(), key=lambda field: str(field[0].name)):
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
    # Some releases of the types of protobuf lack this method's.
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


def _sections(*sections: Iterable[str]) -> Iterator[str]:
    """The lines of the sections that have some, with an empty one between two."""
    is_first = True
    for lines in map(list, sections):
        yield from lines if is_first or not lines else ("", *lines)
        is_first = is_first and not lines


def _braces(head: str, body: Iterable[str]) -> Iterator[str]:
    """A declaration with its body, on one line if that is empty."""
    lines = [*_indent(body)]
    yield from (f"{head} {{", *lines, "}") if lines else (f"{head} {{}}",)


def _indent(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" if line else "" for line in lines)

"""Prints a Protobuf descriptor as the text of a document (CSR-417)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from google.protobuf import descriptor_pb2 as d

from annals.domain.confluent.texts.protobuf_options import OptionPrinter, escape

_LABELS: Final = {1: "optional", 2: "required", 3: "repeated"}
_SCALARS: Final = {number: name.removeprefix("TYPE_").lower() for name, number in d.FieldDescriptorProto.Type.items()}
_MAX_FIELD: Final = 536870911
_MAX_ENUM: Final = 2147483647
#: The keywords of edition 2024 before messages and enums, by the number of the visibility.
_VISIBILITIES: Final = {1: "local ", 2: "export "}
_Path = tuple[int, ...]


def print_descriptor(
    file: d.FileDescriptorProto, *, with_extensions: bool = True, options: OptionPrinter | None = None
) -> str:
    """The text. with_extensions: include `extend` declarations. options: prints options, by default those with names.

    Raises: UnknownOption, if `options` does.
    """
    return "\n".join(_DescriptorPrinter(file, with_extensions, options or OptionPrinter()).lines()) + "\n"


class _DescriptorPrinter:
    """Prints one file. Lines are indented by two spaces for each level."""

    def __init__(self, file: d.FileDescriptorProto, with_extensions: bool, options: OptionPrinter) -> None:
        self._file = file
        self._with_extensions = with_extensions
        self._options = options
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
        yield from _block(f"option {name} = {value};" for name, value in self._options.texts(file.options))
        groups = self._group_names(file.extension)
        yield from _block(self._types(file.message_type, file.enum_type, (), 4, 5, groups))
        if self._with_extensions:
            yield from _block(self._extensions(file.extension, (7,), file.message_type))
        services = (self._service(service, (6, index)) for index, service in enumerate(file.service))
        yield from _block(chain.from_iterable(services))

    def _imports(self) -> Iterator[str]:
        for index, name in enumerate(self._file.dependency):
            is_public, is_weak = index in self._file.public_dependency, index in self._file.weak_dependency
            yield f'import {"public " if is_public else "weak " if is_weak else ""}"{escape(name)}";'
        # Releases of the library before edition 2024 do not have the member.
        yield from (f'import option "{escape(name)}";' for name in getattr(self._file, "option_dependency", ()))

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
        yield from _braces(head or f"{_visibility(message)}message {message.name}", self._message_body(message, path))

    def _message_body(self, message: d.DescriptorProto, path: _Path) -> Iterator[str]:
        entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
        groups = {*_group_names(message.field), *self._group_names(message.extension)}
        fields = (
            self._field(field, (*path, 2, index), message.nested_type, entries)
            for index, field in enumerate(message.field)
            if not field.HasField("oneof_index") or field.proto3_optional
        )
        yield from _sections(
            _reserved(message.reserved_range, message.reserved_name, 1, _MAX_FIELD, self._file.syntax),
            (f"option {name} = {value};" for name, value in self._options.texts(message.options)),
            chain.from_iterable(fields),
            self._oneofs(message, path, entries),
            map(self._extension_range, message.extension_range),
            self._extensions(message.extension, (*path, 6), message.nested_type) if self._with_extensions else (),
            self._types(message.nested_type, message.enum_type, path, 3, 4, {*entries, *groups}),
        )

    def _extension_range(self, one: d.DescriptorProto.ExtensionRange) -> str:
        options = _bracketed(self._options.texts(one.options))
        return f"extensions {_range(one.start, one.end - 1, _MAX_FIELD)}{options};"

    def _group_names(self, extensions: Iterable[d.FieldDescriptorProto]) -> set[str]:
        """The messages that are declared by printed extensions."""
        return _group_names(extensions) if self._with_extensions else set()

    def _oneofs(self, message: d.DescriptorProto, path: _Path, entries: dict[str, d.DescriptorProto]) -> Iterator[str]:
        for oneof_index, oneof in enumerate(message.oneof_decl):
            members = [
                self._field(field, (*path, 2, index), message.nested_type, entries, is_member=True)
                for index, field in enumerate(message.field)
                if field.HasField("oneof_index") and field.oneof_index == oneof_index and not field.proto3_optional
            ]
            if members:
                options = (f"option {name} = {value};" for name, value in self._options.texts(oneof.options))
                yield from _braces(f"oneof {oneof.name}", _sections(options, chain.from_iterable(members)))

    def _field(
        self,
        field: d.FieldDescriptorProto,
        path: _Path,
        siblings: Iterable[d.DescriptorProto],
        entries: dict[str, d.DescriptorProto],
        *,
        is_member: bool = False,
    ) -> Iterator[str]:
        """siblings: the messages among which a group has its own."""
        yield from self._comment(path)
        type_name = field.type_name.rpartition(".")[2]
        entry = entries.get(type_name) if field.type == field.TYPE_MESSAGE else None
        label = "" if is_member or entry is not None else self._label(field)
        options = _bracketed(self._field_options(field))
        if field.type == field.TYPE_GROUP:
            group = next((message for message in siblings if message.name == type_name), d.DescriptorProto())
            yield from self._message(group, path, f"{label}group {type_name} = {field.number}{options}")
            return
        type = _type(field) if entry is None else f"map<{_type(entry.field[0])}, {_type(entry.field[1])}>"
        yield f"{label}{type} {field.name} = {field.number}{options};"

    def _field_options(self, field: d.FieldDescriptorProto) -> Iterator[tuple[str, str]]:
        if field.HasField("default_value"):
            is_text = field.type in (field.TYPE_STRING, field.TYPE_BYTES)
            # The compiler has escaped the default of bytes already.
            text = field.default_value if field.type == field.TYPE_BYTES else escape(field.default_value)
            yield "default", f'"{text}"' if is_text else field.default_value
        if field.HasField("json_name") and field.json_name != _json_name(field.name):
            yield "json_name", f'"{escape(field.json_name)}"'
        yield from self._options.texts(field.options)

    def _label(self, field: d.FieldDescriptorProto) -> str:
        is_written = field.label == field.LABEL_REPEATED or self._has_labels or field.proto3_optional
        return f"{_LABELS[field.label]} " if is_written else ""

    def _extensions(
        self, extensions: Sequence[d.FieldDescriptorProto], path: _Path, siblings: Sequence[d.DescriptorProto]
    ) -> Iterator[str]:
        for extendee in dict.fromkeys(extension.extendee for extension in extensions):
            yield f"extend {extendee} {{"
            for index, extension in enumerate(extensions):
                if extension.extendee == extendee:
                    yield from _indent(self._field(extension, (*path, index), siblings, {}))
            yield "}"

    def _enum(self, enum: d.EnumDescriptorProto, path: _Path) -> Iterator[str]:
        yield from self._comment(path)
        yield f"{_visibility(enum)}enum {enum.name} {{"
        yield from _indent(_reserved(enum.reserved_range, enum.reserved_name, 0, _MAX_ENUM, self._file.syntax))
        yield from _indent(f"option {name} = {value};" for name, value in self._options.texts(enum.options))
        for index, value in enumerate(enum.value):
            yield from _indent(self._comment((*path, 2, index)))
            yield f"  {value.name} = {value.number}{_bracketed(self._options.texts(value.options))};"
        yield "}"

    def _service(self, service: d.ServiceDescriptorProto, path: _Path) -> Iterator[str]:
        yield from self._comment(path)
        yield f"service {service.name} {{"
        yield from _indent(f"option {name} = {value};" for name, value in self._options.texts(service.options))
        for index, method in enumerate(service.method):
            yield from _indent(self._comment((*path, 2, index)))
            input_stream, output_stream = (
                "stream " if is_stream else "" for is_stream in (method.client_streaming, method.server_streaming)
            )
            head = (
                f"  rpc {method.name} ({input_stream}{method.input_type}) returns ({output_stream}{method.output_type})"
            )
            options = [f"    option {name} = {value};" for name, value in self._options.texts(method.options)]
            yield from (f"{head} {{", *options, "  }") if options else (f"{head};",)
        yield "}"

    def _comment(self, path: _Path) -> Iterator[str]:
        text = self._comments.get(path)
        yield from (f"// {line.strip()}".rstrip() for line in text.strip().split("\n")) if text else ()


def _type(field: d.FieldDescriptorProto) -> str:
    return str(field.type_name or _SCALARS[field.type])


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def _bracketed(options: Iterable[tuple[str, str]]) -> str:
    """Options behind a declaration; nothing if there are none."""
    text = ", ".join(f"{name} = {value}" for name, value in options)
    return f" [{text}]" if text else ""


def _group_names(fields: Iterable[d.FieldDescriptorProto]) -> set[str]:
    return {field.type_name.rpartition(".")[2] for field in fields if field.type == field.TYPE_GROUP}


def _visibility(declaration: d.DescriptorProto | d.EnumDescriptorProto) -> str:
    # Releases of the library before edition 2024 do not have the member.
    return _VISIBILITIES.get(getattr(declaration, "visibility", 0), "")


def _reserved(ranges: Iterable[Any], names: Sequence[str], ends_after: int, highest: int, syntax: str) -> Iterator[str]:
    """ends_after: 1 where the end of a range is the number after its last one."""
    texts = [_range(one.start, one.end - ends_after, highest) for one in ranges]
    if texts:
        yield f"reserved {', '.join(texts)};"
    if names:
        quote = "" if syntax == "editions" else '"'
        yield f"reserved {', '.join(f'{quote}{escape(name)}{quote}' for name in names)};"


def _range(first: int, last: int, highest: int) -> str:
    return str(first) if first == last else f"{first} to {'max' if last >= highest else last}"


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

"""Texts of the options in a Protobuf descriptor (CSR-416, CSR-417).

A descriptor has the options that a document defines as bytes without names. Their definitions, in the file and its
imports, give the names and the types of the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

_CONTROL_BYTES: Final = {**{number: f"\\{number:03o}" for number in (*range(32), 127)}, 10: "\\n", 13: "\\r"}
_ESCAPES: Final = {**_CONTROL_BYTES, ord("\\"): "\\\\", ord('"'): '\\"'}
_BYTE_ESCAPES: Final = {**{number: f"\\{number:03o}" for number in range(128, 256)}, **_ESCAPES}


class UnknownOption(Exception):
    """Nothing defines an option."""


class OptionPrinter:
    """Prints the options of one file."""

    def texts(self, options: Message) -> Iterator[tuple[str, str]]:
        """The names and values of the options that are set, by name: a descriptor does not have their order.

        Those without names are a comment, so that texts with different ones differ.
        """
        yield from self._known(options)
        unknown = _unknown_bytes(options)
        if unknown:
            yield f"/* {unknown.hex()} */ deprecated", "false"

    def _known(self, options: Message) -> Iterator[tuple[str, str]]:
        entries = [(self._name(descriptor), _texts(descriptor, value)) for descriptor, value in options.ListFields()]
        for name, texts in sorted(entries):
            if name not in ("uninterpreted_option", "map_entry"):
                yield from ((name, text) for text in texts)

    def _name(self, descriptor: Any) -> str:
        return f"({descriptor.full_name})" if descriptor.is_extension else str(descriptor.name)


class NamedOptionPrinter(OptionPrinter):
    """Prints the options that the file or its imports define with their names."""

    def __init__(self, file: FileDescriptorProto, imports: Sequence[FileDescriptorProto]) -> None:
        """imports: each after those that it imports itself."""
        self._file, self._imports = file, imports
        self._pool: DescriptorPool | None = None
        self._inner_names = _inner_names(file, imports)

    def texts(self, options: Message) -> Iterator[tuple[str, str]]:
        """See `OptionPrinter`. Raises: UnknownOption."""
        return self._known(self._resolve(options) if _unknown_bytes(options) else options)

    def _resolve(self, options: Message) -> Message:
        """The same options with a type that knows the file's."""
        name = options.DESCRIPTOR.full_name
        try:
            self._pool = self._pool or _pool((*self._imports, self._file))
            resolved: Message = GetMessageClass(self._pool.FindMessageTypeByName(name)).FromString(
                options.SerializeToString()
            )
        # The library refuses some files and values that the compiler accepts.
        except (TypeError, KeyError, ValueError, DecodeError) as error:
            raise UnknownOption(name) from error
        if _unknown_bytes(resolved):
            raise UnknownOption(name)
        return resolved

    def _name(self, descriptor: Any) -> str:
        """A name in a document is looked up from inside out, unless it begins with a dot."""
        name = super()._name(descriptor)
        is_hidden = descriptor.is_extension and descriptor.full_name.partition(".")[0] in self._inner_names
        return f"(.{descriptor.full_name})" if is_hidden else name


def escape(text: str | bytes) -> str:
    """A text between quotes. It is bytes where it is not in UTF-8, which Protobuf 2 accepts."""
    return text.translate(_ESCAPES) if isinstance(text, str) else text.decode("latin-1").translate(_BYTE_ESCAPES)


def _texts(descriptor: Any, value: Any) -> list[str]:
    """The texts of a field's values."""
    if isinstance(value, Message):
        return [_message_text(value)]
    if isinstance(value, Mapping):
        key, part = (descriptor.message_type.fields_by_name[name] for name in ("key", "value"))
        pairs = ((_text(key, one), _text(part, value[one])) for one in sorted(value))
        return [f"{{ key: {key_text}, value: {value_text} }}" for key_text, value_text in pairs]
    values = value if isinstance(value, list) or hasattr(value, "append") else (value,)
    return [_text(descriptor, one) for one in values]


def _text(descriptor: Any, value: Any) -> str:
    if isinstance(value, Message):
        return _message_text(value)
    if descriptor.enum_type is not None:
        # Inside a message, an open enum may have a value that has no name.
        known = descriptor.enum_type.values_by_number.get(value)
        return str(value) if known is None else str(known.name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{escape(value)}"' if isinstance(value, str | bytes) else str(value)


def _message_text(message: Message) -> str:
    members = []
    for descriptor, value in message.ListFields():
        texts = _texts(descriptor, value)
        text = ", ".join(texts)
        members.append(f"{_member_name(descriptor)}: {text if len(texts) == 1 else f'[{text}]'}")
    return f"{{ {', '.join(members)} }}"


def _member_name(descriptor: Any) -> str:
    if descriptor.is_extension:
        return f"[{descriptor.full_name}]"
    return str(descriptor.message_type.name if descriptor.type == descriptor.TYPE_GROUP else descriptor.name)


def _unknown_bytes(options: Message) -> bytes:
    """The options that the descriptor has without their names."""
    known: Any = type(options).FromString(options.SerializeToString())
    known.DiscardUnknownFields()
    whole, without = options.SerializeToString(deterministic=True), known.SerializeToString(deterministic=True)
    return whole[len(without) :] if len(whole) > len(without) else b""


def _pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def _inner_names(file: FileDescriptorProto, imports: Iterable[FileDescriptorProto]) -> frozenset[str]:
    """The names that a document of the file finds before those at the root."""
    own_package = file.package.split(".") if file.package else []
    names = {name for member in _members(file) for name in _names(member)}
    for other in (file, *imports):
        package = other.package.split(".") if other.package else []
        for length in range(1, len(own_package) + 1):
            if package[:length] == own_package[:length]:
                names |= {*package[length : length + 1]} or {member.name for member in _members(other)}
    return frozenset(names)


def _members(file: FileDescriptorProto) -> tuple[Any, ...]:
    return (*file.message_type, *file.enum_type, *file.service, *file.extension)


def _names(declaration: Message) -> Iterator[str]:
    """The names of the declarations in a declaration."""
    for descriptor, value in declaration.ListFields():
        if descriptor.message_type is not None and hasattr(value, "append"):
            for member in value:
                yield getattr(member, "name", "")
                yield from _names(member)

"""Protobuf texts: the compiler of Protobuf reads them, and the canonical text is printed from its descriptor.

Clients send either a `.proto` text or a descriptor in base64, which is stored as the text that declares the same.
Rules CSR-415 to CSR-418, CSR-420, CSR-509, CSR-510.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from google.protobuf.descriptor_pb2 import Edition, FileDescriptorProto
from google.protobuf.message import DecodeError

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.compatibility.protobuf import protobuf_differences
from annals.domain.confluent.texts.protobuf_builtin import builtin_documents
from annals.domain.confluent.texts.protobuf_normal import normalize_descriptor
from annals.domain.confluent.texts.protobuf_options import NamedOptionPrinter, UnknownOption
from annals.domain.confluent.texts.protobuf_printer import print_descriptor
from annals.domain.formats.contract import DocumentLocation, InvalidDocument
from annals.domain.formats.protobuf.protoc import compile_text, well_known_imports
from annals.domain.formats.protobuf.source import line_location, read_source

_BASE64: Final = re.compile(rb"[A-Za-z0-9+/\s]+={0,2}\s*\Z")
#: A path of an import that stays in the compiler's folder.
_SAFE_NAME: Final = re.compile(r"(?!/)(?!.*(?:^|/)\.{1,2}(?:/|\Z))[^\\\x00-\x1f:]{1,1000}\Z")
_OWN_NAME: Final = "schema.proto"
#: The name of a descriptor that is sent to clients, which give it one of their own.
_SENT_NAME: Final = "default"


@dataclass(frozen=True, slots=True)
class ProtobufText:
    """A parsed text. descriptor: with comments. imports: the descriptors of what it imports, by name."""

    text: str
    descriptor: FileDescriptorProto
    imports: Mapping[str, FileDescriptorProto]


def parse(text: bytes, references: Mapping[str, bytes]) -> ProtobufText:
    """See `SchemaTexts`."""
    sent_descriptor = _decode_descriptor(text)
    source_text = print_descriptor(sent_descriptor) if sent_descriptor is not None else None
    source = read_source(source_text.encode() if source_text is not None else text)
    referenced = {_check_name(name): read_source(one).text for name, one in references.items()}
    documents = {**builtin_documents((source.text, *referenced.values())), **referenced}
    for statement in source.imports:
        if statement.value not in documents and statement.value not in well_known_imports():
            raise InvalidDocument(
                f'nothing resolves the import "{statement.value}"; name the schema in "references"',
                source.location(statement.tokens[0].start),
            )
    file_name = next(name for name in (_OWN_NAME, *(f"{n}.proto" for n in range(1, 99))) if name not in documents)
    result = compile_text(source.text, documents, file_name, with_imports=True)
    if result.descriptor is None:
        error = result.errors[0]
        raise InvalidDocument(error.text, line_location(source.text, error.line) if error.line else DocumentLocation())
    return ProtobufText(source.text, result.descriptor, {file.name: file for file in result.imports})


def violation(parsed: ProtobufText) -> str | None:
    """None: stored texts have to keep all rules of new ones."""


def canonical_text(parsed: ProtobufText) -> str:
    return print_descriptor(parsed.descriptor)


def normalized_text(parsed: ProtobufText) -> str:
    options = NamedOptionPrinter(parsed.descriptor, tuple(parsed.imports.values()))
    try:
        return print_descriptor(normalize_descriptor(parsed.descriptor), options=options)
    except UnknownOption:
        return parsed.text  # a text without the option would be another schema


def stored_text(parsed: ProtobufText, sent: str) -> str:
    return parsed.text


def resolved(parsed: ProtobufText) -> None:
    """None: a file cannot take in the declarations of another package."""


def declared_format(parsed: ProtobufText) -> str:
    syntax = parsed.descriptor.syntax
    if syntax == "editions":
        return f"Protobuf/{Edition.Name(parsed.descriptor.edition).removeprefix('EDITION_')}"
    return "Protobuf/3" if syntax == "proto3" else "Protobuf/2"


def formatted_text(parsed: ProtobufText, format: str) -> str | None:
    if format == "serialized":
        descriptor = FileDescriptorProto()
        descriptor.CopyFrom(parsed.descriptor)
        descriptor.ClearField("source_code_info")
        descriptor.name = _SENT_NAME
        return b64encode(descriptor.SerializeToString(deterministic=True)).decode()
    return print_descriptor(parsed.descriptor, with_extensions=False) if format == "ignore_extensions" else None


def differences(reader: ProtobufText, writer: ProtobufText, is_lenient: bool) -> list[Difference]:
    return protobuf_differences(
        (writer.descriptor, *writer.imports.values()), (reader.descriptor, *reader.imports.values())
    )


def _decode_descriptor(text: bytes) -> FileDescriptorProto | None:
    """The descriptor that a text is in base64; None for any other text."""
    if not _BASE64.match(text):
        return None
    try:
        descriptor = FileDescriptorProto.FromString(b64decode(text))
    except (Base64Error, DecodeError, ValueError):
        return None
    return descriptor if descriptor.ByteSize() else None


def _check_name(name: str) -> str:
    if not _SAFE_NAME.match(name):
        raise InvalidDocument(f'"{name}" is no path of an import')
    return name

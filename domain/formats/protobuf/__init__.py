"""Protobuf: proto2, proto3 and the editions that the compiler supports.

The Protobuf compiler itself checks a document. Imports other than `google/protobuf/*.proto` are not available; only the
names of their types are known. Begin with `model.py`, then `imports.py` and `comparison.py`.
Spec: schema 1.0-rc4, "Protobuf"; Protobuf documentation, "Language Guide".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from annals.domain.formats.contract import MAX_INCOMPATIBILITIES, Incompatibility, InvalidDocument, NewerSide
from annals.domain.formats.protobuf.comparison import find_incompatibilities
from annals.domain.formats.protobuf.descriptor_reader import document_from_descriptor
from annals.domain.formats.protobuf.imports import compile_source
from annals.domain.formats.protobuf.model import ProtoDocument
from annals.domain.formats.protobuf.normal_form import normal_form
from annals.domain.formats.protobuf.source import ProtoSource, read_source

__all__ = ["ProtoDocument", "canonical_form", "incompatibilities", "parse"]

#: The format without a release: each document declares its own.
_ANY_LANGUAGE: Final = "protobuf"
#: The declaration of a document's language, by the release in its format.
_LANGUAGES: Final = {
    "2": 'syntax = "proto2"',
    "3": 'syntax = "proto3"',
    "2023": 'edition = "2023"',
    "2024": 'edition = "2024"',
}
#: The first token of a document that does not declare its language.
_FIRST_WORDS: Final = ("package", "import", "option", "message", "enum", "service", "extend", ";")


def parse(document: bytes, name: str) -> ProtoDocument:
    """The document in a form that is fast to compare.

    name: `protobuf/` and 2, 3, 2.0, 3.0 or an edition; `protobuf` for the language that the document declares.
    O(bytes), a millisecond for 2 kB; a document with unavailable imports is compiled up to six times.
    Raises: InvalidDocument.
    """
    source = read_source(document)
    if name.lower() != _ANY_LANGUAGE:
        _check_language(source, name)
    resolved = compile_source(source)
    assert resolved.compiled.descriptor is not None
    imports = (" ".join(token.text for token in statement.tokens[1:-1]) for statement in source.imports)
    return document_from_descriptor(
        resolved.compiled.descriptor, source.text, imports, resolved.opaque, resolved.options
    )


def canonical_form(parsed: ProtoDocument) -> bytes:
    """Equal bytes for equivalent documents: the compiled, sorted descriptor; see `normal_form.normal_form`."""
    return normal_form(parsed)


def incompatibilities(
    reader: ProtoDocument,
    writer: ProtoDocument,
    newer: NewerSide | None = None,
    *,
    limit: int = MAX_INCOMPATIBILITIES,
) -> Sequence[Incompatibility]:
    """Why data written with one document cannot be read with another; empty where it can. O(elements of both).

    newer: which document replaces the other. A removal in one direction is an addition in the other, and only one of
    them is allowed. Without it, everything is allowed that either order allows.
    """
    return find_incompatibilities(reader, writer, newer, limit)


def _check_language(source: ProtoSource, name: str) -> None:
    """Raises: InvalidDocument where the document declares another language than its format, or for an unknown one."""
    language = _LANGUAGES.get(name.lower().removeprefix("protobuf/").removesuffix(".0"))
    if language is None:
        raise InvalidDocument(f"{name} is not a release of Protobuf that is known here: 2, 3, 2023, 2024")
    statement = source.language
    if statement is not None:
        declared_language = f'{statement.tokens[0].text} = "{statement.value}"'
        if declared_language != language:
            raise InvalidDocument(
                f"the document says {declared_language}, but {name} requires {language}",
                source.location(statement.tokens[0].start),
            )
    # Any other first token is an error that the compiler reports better.
    elif language != _LANGUAGES["2"] and source.tokens[0].text in _FIRST_WORDS:
        raise InvalidDocument(
            f"{name} requires {language}; a document without it is proto2", source.location(source.tokens[0].start)
        )

"""Compiles documents with unavailable imports; of the imported types only the names are known.

A document can never cause a read. But a registry stores the documents of a project one by one, so a missing import is
not an error. Missing imports, and options that they would define, are overwritten with spaces, which keeps the line
numbers. Stub documents then declare the missing types. Everything else is checked as usual.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from annals.domain.formats.contract import InvalidDocument
from annals.domain.formats.protobuf.blanking import blank_out, custom_options
from annals.domain.formats.protobuf.protoc import CompilerError, CompilerResult, compile_text, well_known_imports
from annals.domain.formats.protobuf.source import ProtoSource, ProtoStatement, ProtoToken, line_location

_STUB_FILE_NAME: Final = "declared_%d.proto"
#: Maximum compilations of a document. The compiler may report missing types only after others are declared.
_MAX_ROUNDS: Final = 6
_MISSING_TYPE: Final = re.compile(r'^"([\w.]+)" is (?:not defined|resolved to "([\w.]+)", which is not defined)')
_MISSING_VALUE: Final = re.compile(r'^Enum type "([\w.]+)" has no value named "(\w+)"')
_ALREADY_DEFINED: Final = re.compile(r'^"([\w.]+)" is already defined')
_MESSAGE_DEFAULT_ERROR: Final = "Messages can't have default values"
_LABELS: Final = ("optional", "required", "repeated")

#: The types to declare, by full name: messages (None), or enums with the names of their values.
_DeclaredTypes = dict[str, frozenset[str] | None]


@dataclass(frozen=True, slots=True)
class CompiledDocument:
    """A compiled document. opaque: full names of types that only an unavailable import defines.

    options: the text of options that were not checked.
    """

    compiled: CompilerResult
    opaque: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()


def compile_source(source: ProtoSource) -> CompiledDocument:
    """The compiled document, with stub declarations for unknown imports. Raises: InvalidDocument."""
    unknown = [statement for statement in source.imports if statement.value not in well_known_imports()]
    if unknown:
        return _with_opaque_types(source, unknown)
    compiled = compile_text(source.text)
    if compiled.descriptor is None:
        raise _invalid_document(source, compiled.errors[0])
    return CompiledDocument(compiled)


def _with_opaque_types(source: ProtoSource, unknown: Sequence[ProtoStatement]) -> CompiledDocument:
    options = list(custom_options(source.tokens))
    text = blank_out(source.text, (*options, *(statement.tokens for statement in unknown)))
    insert_offset, package = unknown[0].tokens[0].start, _package_name(source)
    declared: _DeclaredTypes = {}
    missing_type_errors: list[CompilerError] = []
    for _ in range(_MAX_ROUNDS):
        stub_documents = _stub_documents(declared)
        imports = "".join(f'import "{name}"; ' for name in stub_documents)
        compiled = compile_text(text[:insert_offset] + imports + text[insert_offset:], stub_documents)
        if compiled.descriptor is not None:
            option_texts = tuple(" ".join(token.text for token in tokens) for tokens in options)
            return CompiledDocument(compiled, frozenset(declared), option_texts)
        missing_type_errors += [error for error in compiled.errors if _MISSING_TYPE.match(error.text)]
        extended = _with_parents(_with_missing_types(declared, compiled.errors, source, package))
        if extended == declared:
            break
        declared = extended
    raise _invalid_document(source, _error_to_report(compiled.errors, missing_type_errors, package))


def _error_to_report(
    errors: Sequence[CompilerError], missing_type_errors: Sequence[CompilerError], package: str
) -> CompilerError:
    """The error to report: one that imports cannot fix, such as a type missing inside of the document's own types."""
    for error in errors:
        if taken_name := _ALREADY_DEFINED.match(error.text):
            nested_errors = (
                candidate
                for candidate in missing_type_errors
                if f"{_missing_type(candidate, package)}.".startswith(f"{taken_name[1]}.")
            )
            return next(nested_errors, error)
    return next((candidate for candidate in errors if not _MISSING_TYPE.match(candidate.text)), errors[0])


def _missing_type(error: CompilerError, package: str) -> str:
    match = _MISSING_TYPE.match(error.text)
    return _full_name(match[1], match[2], package) if match else ""


def _with_missing_types(
    declared: _DeclaredTypes, errors: Sequence[CompilerError], source: ProtoSource, package: str
) -> _DeclaredTypes:
    """The types to declare, extended by the types and kinds that the compiler's errors reveal."""
    extended = dict(declared)
    enums: set[int] = set()
    for error in errors:
        if _MISSING_TYPE.match(error.text):
            extended.setdefault(_missing_type(error, package), None)
        elif (enum_value := _MISSING_VALUE.match(error.text)) and enum_value[1] in extended:
            extended[enum_value[1]] = (extended[enum_value[1]] or frozenset()) | {enum_value[2]}
        elif error.text.startswith(_MESSAGE_DEFAULT_ERROR) and error.line is not None:
            enums.add(error.line)
    for name in _types_with_default(extended, enums, source) if enums else ():
        extended[name] = extended[name] or frozenset()
    return extended


def _full_name(type_name: str, resolved: str | None, package: str) -> str:
    """The full name of a type: without dots it is in the document's package, with dots it is absolute."""
    if resolved is not None or type_name.startswith("."):
        return (resolved or type_name).removeprefix(".")
    return type_name if "." in type_name or not package else f"{package}.{type_name}"


def _with_parents(declared: _DeclaredTypes) -> _DeclaredTypes:
    """The types to declare, with the types between each one and the declared type that contains it."""
    known = dict(declared)
    for name in declared:
        owner = _declared_owner(name, declared)
        while owner and (name := name.rpartition(".")[0]) != owner:
            known.setdefault(name, None)
    return known


def _declared_owner(name: str, declared: _DeclaredTypes) -> str | None:
    """The nearest declared type that contains a type; None where none does."""
    while name := name.rpartition(".")[0]:
        if name in declared:
            return name
    return None


def _types_with_default(declared: _DeclaredTypes, lines: set[int], source: ProtoSource) -> Iterator[str]:
    """The declared types of fields with defaults in the given lines: messages have no defaults, so these are enums."""
    names_by_suffix: dict[str, list[str]] = defaultdict(list)
    for name in declared:
        names_by_suffix[name.rpartition(".")[2]].append(name)
    pending_words: list[str] = []
    offset, first_line, current_line = 0, 1, 1
    for token in source.tokens:
        current_line += source.text.count("\n", offset, token.start)
        offset = token.start
        if token.text not in ("{", "}", ";"):
            pending_words.append(token.text)
            continue
        if (
            "default" in pending_words
            and "=" in pending_words
            and not lines.isdisjoint(range(first_line, current_line + 1))
        ):
            type_name = "".join(
                word for word in pending_words[: pending_words.index("=") - 1] if word not in _LABELS
            ).lstrip(".")
            matching_names = names_by_suffix.get(type_name.rpartition(".")[2], ())
            yield from (name for name in matching_names if f".{name}".endswith(f".{type_name}"))
        pending_words, first_line = [], current_line


def _stub_documents(declared: _DeclaredTypes) -> dict[str, str]:
    """Documents that declare the types, one for each package and kind."""
    names_by_owner: dict[str | None, list[str]] = defaultdict(list)
    for name in declared:
        names_by_owner[_declared_owner(name, declared)].append(name)
    declarations: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for name in names_by_owner[None]:
        declarations[name.rpartition(".")[0], declared[name] is None].append(
            _declaration(name, declared, names_by_owner)
        )
    return {
        _STUB_FILE_NAME % index: f'syntax = "proto{2 if messages else 3}"; '
        + (f"package {package}; " if package else "")
        + "".join(texts)
        for index, ((package, messages), texts) in enumerate(declarations.items())
    }


def _declaration(name: str, declared: _DeclaredTypes, names_by_owner: dict[str | None, list[str]]) -> str:
    values, simple_name = declared[name], name.rpartition(".")[2]
    if values is not None:
        other_values = "".join(f"{value} = {number}; " for number, value in enumerate(sorted(values), 1))
        return f"enum {simple_name} {{ {name.replace('.', '_')}_0 = 0; {other_values}}} "
    nested = "".join(_declaration(other, declared, names_by_owner) for other in names_by_owner.get(name, ()))
    return f"message {simple_name} {{ extensions 1 to max; {nested}}} "


def _package_name(source: ProtoSource) -> str:
    tokens = source.tokens
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.text == "package" and (index == 0 or tokens[index - 1].text in (";", "}")):
            end = next(
                (position for position in range(index, len(tokens)) if tokens[position].text == ";"), len(tokens)
            )
            return "".join(name_token.text for name_token in tokens[index + 1 : end])
    return ""


def _invalid_document(source: ProtoSource, error: CompilerError) -> InvalidDocument:
    line = error.line
    if line is None and (number := next(_reserved_field_numbers(source), None)):
        line = source.text.count("\n", 0, number.start) + 1
    return InvalidDocument(error.text, None if line is None else line_location(source.text, line))


def _reserved_field_numbers(source: ProtoSource) -> Iterator[ProtoToken]:
    """Field numbers in the range that Protobuf reserves for itself: the only error without a line from the compiler."""
    pairs = zip(source.tokens, source.tokens[1:], strict=False)
    yield from (after for before, after in pairs if before.text == "=" and re.fullmatch(r"19\d{3}", after.text))

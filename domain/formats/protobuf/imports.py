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

from domain.formats.contract import InvalidDocument
from domain.formats.protobuf.blanking import blank_out, custom_options
from domain.formats.protobuf.protoc import CompilerError, CompilerResult, compile_text, well_known_imports
from domain.formats.protobuf.source import ProtoSource, ProtoStatement, ProtoToken, line_location

_BESIDE: Final = "declared_%d.proto"
#: Maximum compilations of a document. The compiler may report missing types only after others are declared.
_ROUNDS: Final = 6
_MISSING: Final = re.compile(r'^"([\w.]+)" is (?:not defined|resolved to "([\w.]+)", which is not defined)')
_VALUE: Final = re.compile(r'^Enum type "([\w.]+)" has no value named "(\w+)"')
_TAKEN: Final = re.compile(r'^"([\w.]+)" is already defined')
_NO_MESSAGE: Final = "Messages can't have default values"
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
    unknown = [one for one in source.imports if one.value not in well_known_imports()]
    if unknown:
        return _with_opaque_types(source, unknown)
    compiled = compile_text(source.text)
    if compiled.descriptor is None:
        raise _invalid_document(source, compiled.flaws[0])
    return CompiledDocument(compiled)


def _with_opaque_types(source: ProtoSource, unknown: Sequence[ProtoStatement]) -> CompiledDocument:
    options = list(custom_options(source.tokens))
    text = blank_out(source.text, (*options, *(one.tokens for one in unknown)))
    at, package = unknown[0].tokens[0].start, _package(source)
    declared: _DeclaredTypes = {}
    missed: list[CompilerError] = []
    for _ in range(_ROUNDS):
        beside = _documents(declared)
        imports = "".join(f'import "{name}"; ' for name in beside)
        compiled = compile_text(text[:at] + imports + text[at:], beside)
        if compiled.descriptor is not None:
            shown = tuple(" ".join(token.text for token in tokens) for tokens in options)
            return CompiledDocument(compiled, frozenset(declared), shown)
        missed += [flaw for flaw in compiled.flaws if _MISSING.match(flaw.text)]
        learnt = _with_parents(_with_missing_types(declared, compiled.flaws, source, package))
        if learnt == declared:
            break
        declared = learnt
    raise _invalid_document(source, _error_to_report(compiled.flaws, missed, package))


def _error_to_report(flaws: Sequence[CompilerError], missed: Sequence[CompilerError], package: str) -> CompilerError:
    """The error to report: one that imports cannot fix, such as a type missing inside of the document's own types."""
    for flaw in flaws:
        if taken := _TAKEN.match(flaw.text):
            inner = (one for one in missed if f"{_missing_type(one, package)}.".startswith(f"{taken[1]}."))
            return next(inner, flaw)
    return next((one for one in flaws if not _MISSING.match(one.text)), flaws[0])


def _missing_type(flaw: CompilerError, package: str) -> str:
    missing = _MISSING.match(flaw.text)
    return _full_name(missing[1], missing[2], package) if missing else ""


def _with_missing_types(
    declared: _DeclaredTypes, flaws: Sequence[CompilerError], source: ProtoSource, package: str
) -> _DeclaredTypes:
    """The types to declare, extended by the types and kinds that the compiler's errors reveal."""
    known = dict(declared)
    enums: set[int] = set()
    for flaw in flaws:
        if _MISSING.match(flaw.text):
            known.setdefault(_missing_type(flaw, package), None)
        elif (value := _VALUE.match(flaw.text)) and value[1] in known:
            known[value[1]] = (known[value[1]] or frozenset()) | {value[2]}
        elif flaw.text.startswith(_NO_MESSAGE) and flaw.line is not None:
            enums.add(flaw.line)
    for name in _types_with_default(known, enums, source) if enums else ():
        known[name] = known[name] or frozenset()
    return known


def _full_name(written: str, resolved: str | None, package: str) -> str:
    """The full name of a type: without dots it is in the document's package, with dots it is absolute."""
    if resolved is not None or written.startswith("."):
        return (resolved or written).removeprefix(".")
    return written if "." in written or not package else f"{package}.{written}"


def _with_parents(declared: _DeclaredTypes) -> _DeclaredTypes:
    """The types to declare, with the types between each one and the declared type that contains it."""
    known = dict(declared)
    for name in declared:
        owner = _owner(name, declared)
        while owner and (name := name.rpartition(".")[0]) != owner:
            known.setdefault(name, None)
    return known


def _owner(name: str, declared: _DeclaredTypes) -> str | None:
    """The nearest declared type that contains a type; None where none does."""
    while name := name.rpartition(".")[0]:
        if name in declared:
            return name
    return None


def _types_with_default(declared: _DeclaredTypes, lines: set[int], source: ProtoSource) -> Iterator[str]:
    """The declared types of fields with defaults in the given lines: messages have no defaults, so these are enums."""
    simple: dict[str, list[str]] = defaultdict(list)
    for name in declared:
        simple[name.rpartition(".")[2]].append(name)
    words: list[str] = []
    at, first, now = 0, 1, 1
    for token in source.tokens:
        now += source.text.count("\n", at, token.start)
        at = token.start
        if token.text not in ("{", "}", ";"):
            words.append(token.text)
            continue
        if "default" in words and "=" in words and not lines.isdisjoint(range(first, now + 1)):
            written = "".join(word for word in words[: words.index("=") - 1] if word not in _LABELS).lstrip(".")
            named = simple.get(written.rpartition(".")[2], ())
            yield from (name for name in named if f".{name}".endswith(f".{written}"))
        words, first = [], now


def _documents(declared: _DeclaredTypes) -> dict[str, str]:
    """Documents that declare the types, one for each package and kind."""
    inside: dict[str | None, list[str]] = defaultdict(list)
    for name in declared:
        inside[_owner(name, declared)].append(name)
    bodies: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for name in inside[None]:
        bodies[name.rpartition(".")[0], declared[name] is None].append(_declaration(name, declared, inside))
    return {
        _BESIDE % index: f'syntax = "proto{2 if messages else 3}"; '
        + (f"package {package}; " if package else "")
        + "".join(lines)
        for index, ((package, messages), lines) in enumerate(bodies.items())
    }


def _declaration(name: str, declared: _DeclaredTypes, inside: dict[str | None, list[str]]) -> str:
    values, simple = declared[name], name.rpartition(".")[2]
    if values is not None:
        rest = "".join(f"{value} = {number}; " for number, value in enumerate(sorted(values), 1))
        return f"enum {simple} {{ {name.replace('.', '_')}_0 = 0; {rest}}} "
    inner = "".join(_declaration(other, declared, inside) for other in inside.get(name, ()))
    return f"message {simple} {{ extensions 1 to max; {inner}}} "


def _package(source: ProtoSource) -> str:
    tokens = source.tokens
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0 and token.text == "package" and (index == 0 or tokens[index - 1].text in (";", "}")):
            end = next((at for at in range(index, len(tokens)) if tokens[at].text == ";"), len(tokens))
            return "".join(part.text for part in tokens[index + 1 : end])
    return ""


def _invalid_document(source: ProtoSource, flaw: CompilerError) -> InvalidDocument:
    line = flaw.line
    if line is None and (number := next(_reserved_field_numbers(source), None)):
        line = source.text.count("\n", 0, number.start) + 1
    return InvalidDocument(flaw.text, None if line is None else line_location(source.text, line))


def _reserved_field_numbers(source: ProtoSource) -> Iterator[ProtoToken]:
    """Field numbers in the range that Protobuf reserves for itself: the only error without a line from the compiler."""
    pairs = zip(source.tokens, source.tokens[1:], strict=False)
    yield from (after for before, after in pairs if before.text == "=" and re.fullmatch(r"19\d{3}", after.text))

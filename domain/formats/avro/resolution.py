"""Finds the differences of two schemas that prevent a reader from reading the writer's data.

Spec: Avro, "Schema Resolution", "Aliases", "Decimal". Each pair of types is compared once, so recursive types
terminate. At most one branch of a union is a candidate, so there is no backtracking: any difference is final.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from domain.formats.avro.schema import (
    NAMED_TYPES,
    PRIMITIVE_TYPES,
    AvroSchema,
    AvroType,
    RecordField,
    SourceLocations,
    TypeReference,
    shorten_name,
)
from domain.formats.contract import MAX_INCOMPATIBILITIES, Incompatibility

#: The promotions (writer, reader) that Avro allows.
_PROMOTIONS: Final = frozenset(
    {
        *(("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double")),
        *(("float", "double"), ("string", "bytes"), ("bytes", "string")),
    }
)
#: Primitive types that a reader of the same type accepts without further checks; bytes may be decimals.
_ALIKE: Final = PRIMITIVE_TYPES - {"bytes"}
_PROMOTED: Final = frozenset(kind for kind, _ in _PROMOTIONS)
#: Rule, text, pointer into the reader, pointer into the writer.
_Difference = tuple[str, str, str, str]


def find_incompatibilities(reader: AvroSchema, writer: AvroSchema) -> list[Incompatibility]:
    """The incompatibilities in the order of the reader's document; at most MAX_INCOMPATIBILITIES."""
    readers, writers = SourceLocations(reader.source), SourceLocations(writer.source)
    told: list[Incompatibility] = []
    for rule, text, read, written in _SchemaResolution(reader, writer).run():
        told.append(Incompatibility(rule, text, readers.location(read), writers.location(written)))
        if len(told) == MAX_INCOMPATIBILITIES:
            break
    return told


class _SchemaResolution:
    """A work list of the type pairs that must match; it needs no recursion."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema) -> None:
        self._reader, self._writer = reader.types, writer.types
        self._todo = [(reader.root, writer.root)]
        self._seen: set[tuple[int, int]] = set()
        self._branches: dict[int, dict[tuple[str, str], TypeReference]] = {}
        self._fields: dict[int, dict[str, RecordField]] = {}

    def run(self) -> Iterator[_Difference]:
        while self._todo:
            read, written = self._todo.pop()
            reader, writer = self._reader[read.type], self._writer[written.type]
            if reader.kind in PRIMITIVE_TYPES or writer.kind in PRIMITIVE_TYPES:
                # Primitive types contain no further types, and their errors are reported at every use.
                if reader.kind != writer.kind or reader.kind not in _ALIKE:
                    yield from self._compare(read, reader, written, writer)
            elif (read.type, written.type) not in self._seen:
                self._seen.add((read.type, written.type))
                yield from self._compare(read, reader, written, writer)

    def _compare(
        self, read: TypeReference, reader: AvroType, written: TypeReference, writer: AvroType
    ) -> Iterator[_Difference]:
        if writer.kind == "union":
            self._later([(read, branch) for branch in writer.parts])
        elif reader.kind == "union":
            branch = self._branch(read, writer)
            if branch is None:
                text = f"no type of the reader's union reads data of type {writer.label}"
                yield "missing-union-branch", text, read.pointer, written.pointer
            else:
                self._later([(branch, written)])
        elif reader.kind != writer.kind:
            if (writer.kind, reader.kind) not in _PROMOTIONS:
                text = f"data of type {writer.label} cannot be read as {reader.label}"
                yield "type-mismatch", text, read.pointer, written.pointer
        elif reader.kind in NAMED_TYPES and not _same_name(reader, writer):
            text = f"data of {writer.label} cannot be read as {reader.label}, which has no such alias"
            yield "name-mismatch", text, read.pointer, written.pointer
        elif reader.kind == "record":
            yield from self._records(read, written)
        else:
            self._later(list(zip(reader.parts, writer.parts, strict=True)))
            yield from _leaf_differences(reader, writer, read.pointer, written.pointer)

    def _later(self, pairs: list[tuple[TypeReference, TypeReference]]) -> None:
        self._todo += reversed(pairs)

    def _records(self, read: TypeReference, written: TypeReference) -> Iterator[_Difference]:
        reader, fields = self._reader[read.type], self._fields_of(written.type)
        pairs = []
        names = {field.name for field in reader.fields}
        for field in reader.fields:
            # Every written field goes into one reader field: the one with its name, else the first with its alias.
            source = fields.get(field.name)
            if source is None:
                alias = next((alias for alias in field.aliases if alias in fields and alias not in names), None)
                source = fields[alias] if alias is not None else None
                names |= {alias} if alias is not None else set()
            if source is not None:
                pairs.append((field.type, source.type))
            elif field.required:
                text = (
                    f'the reader\'s field "{shorten_name(field.name)}" has no default, and the writer has no such field'
                )
                yield "reader-field-missing-default", text, field.pointer, written.pointer
        self._later(pairs)

    def _fields_of(self, record: int) -> dict[str, RecordField]:
        if record not in self._fields:
            self._fields[record] = {field.name: field for field in self._writer[record].fields}
        return self._fields[record]

    def _branch(self, union: TypeReference, writer: AvroType) -> TypeReference | None:
        """The branch that reads a type: one of the same kind and name, or with its alias, else the first promotion."""
        branches = self._branches_of(union.type)
        same = branches.get((writer.kind, writer.name))
        if same is not None or writer.kind not in _PROMOTED:
            return same
        order = self._reader[union.type].parts
        return next((branch for branch in order if (writer.kind, self._reader[branch.type].kind) in _PROMOTIONS), None)

    def _branches_of(self, union: int) -> dict[tuple[str, str], TypeReference]:
        if union not in self._branches:
            uses = [(self._reader[use.type], use) for use in self._reader[union].parts]
            found = {(branch.kind, branch.name): use for branch, use in uses}
            for branch, use in uses:
                for alias in branch.aliases:
                    found.setdefault((branch.kind, alias), use)
            self._branches[union] = found
        return self._branches[union]


def _same_name(reader: AvroType, writer: AvroType) -> bool:
    """Whether a reader accepts data of a named type as its own type.

    Since 1.9 the specification compares names without namespaces. Here a new namespace is a new name (SC-36); an alias
    makes it compatible, like any other renaming.
    """
    return reader.name == writer.name or writer.name in reader.aliases


def _leaf_differences(reader: AvroType, writer: AvroType, read: str, written: str) -> Iterator[_Difference]:
    if reader.size != writer.size:
        yield "fixed-size-mismatch", f"{writer.size} bytes were written, {reader.size} are read", read, written
    known = frozenset(reader.symbols)
    if reader.default is None and (missing := [symbol for symbol in writer.symbols if symbol not in known]):
        text = f"the reader's enum has neither the symbols {', '.join(missing)[:200]} nor a default"
        yield "missing-enum-symbols", text, read, written
    if reader.decimal and writer.decimal and not _keeps_decimal(reader.decimal, writer.decimal):
        forms = [f"precision {precision} and scale {scale}" for precision, scale in (writer.decimal, reader.decimal)]
        yield "decimal-mismatch", f"decimals of {forms[0]} cannot be read with {forms[1]}", read, written


def _keeps_decimal(reader: tuple[int, int], writer: tuple[int, int]) -> bool:
    """Whether decimals keep their values under another precision and scale.

    The specification demands equal numbers. But a higher precision loses nothing, and SC-36 allows wider bounds.
    """
    return reader[1] == writer[1] and reader[0] >= writer[0]

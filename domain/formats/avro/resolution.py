"""Finds the differences of two schemas that prevent a reader from reading the writer's data.

Spec: Avro, "Schema Resolution", "Aliases", "Decimal". Each pair of types is compared once, so recursive types
terminate. At most one branch of a union is a candidate, so there is no backtracking: any difference is final.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annals.domain.formats.avro.schema import (
    NAMED_TYPES,
    PRIMITIVE_TYPES,
    TYPES_WITHOUT_DETAILS,
    AvroSchema,
    AvroType,
    RecordField,
    SourceLocations,
    TypeReference,
    shorten_name,
)
from annals.domain.formats.contract import Incompatibility

#: The promotions (writer, reader) that Avro allows.
_PROMOTIONS: Final = frozenset(
    {
        *(("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double")),
        *(("float", "double"), ("string", "bytes"), ("bytes", "string")),
    }
)
_PROMOTED_KINDS: Final = frozenset(kind for kind, _ in _PROMOTIONS)
#: Rule, text, pointer into the reader, pointer into the writer.
_Difference = tuple[str, str, str, str]


def find_incompatibilities(reader: AvroSchema, writer: AvroSchema, limit: int) -> list[Incompatibility]:
    """The incompatibilities in the order of the reader's document; at most `limit`."""
    readers, writers = SourceLocations(reader.source), SourceLocations(writer.source)
    incompatibilities: list[Incompatibility] = []
    for rule, text, reader_pointer, writer_pointer in _SchemaResolution(reader, writer).run():
        incompatibilities.append(
            Incompatibility(rule, text, readers.location(reader_pointer), writers.location(writer_pointer))
        )
        if len(incompatibilities) == limit:
            break
    return incompatibilities


class _SchemaResolution:
    """A work list of the type pairs that must match; it needs no recursion."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema) -> None:
        self._reader, self._writer = reader.types, writer.types
        self._pending = [(reader.root, writer.root)]
        self._seen_pairs: set[tuple[int, int]] = set()
        self._branches: dict[int, dict[tuple[str, str], TypeReference]] = {}
        self._fields: dict[int, dict[str, RecordField]] = {}

    def run(self) -> Iterator[_Difference]:
        while self._pending:
            reader_reference, writer_reference = self._pending.pop()
            reader, writer = self._reader[reader_reference.type], self._writer[writer_reference.type]
            if reader.kind in PRIMITIVE_TYPES or writer.kind in PRIMITIVE_TYPES:
                # Primitive types contain no further types, and their errors are reported at every use.
                if reader.kind != writer.kind or reader.kind not in TYPES_WITHOUT_DETAILS:
                    yield from self._compare(reader_reference, reader, writer_reference, writer)
            elif writer.plain_kinds is not None and reader.plain_kinds is not None:
                # Most fields are such unions, and most of them stay as they are.
                if not writer.plain_kinds <= reader.plain_kinds:
                    yield from self._compare(reader_reference, reader, writer_reference, writer)
            elif (reader_reference.type, writer_reference.type) not in self._seen_pairs:
                self._seen_pairs.add((reader_reference.type, writer_reference.type))
                yield from self._compare(reader_reference, reader, writer_reference, writer)

    def _compare(
        self, reader_reference: TypeReference, reader: AvroType, writer_reference: TypeReference, writer: AvroType
    ) -> Iterator[_Difference]:
        if writer.kind == "union":
            self._push([(reader_reference, branch) for branch in writer.parts])
        elif reader.kind == "union":
            branch = self._branch(reader_reference, writer)
            if branch is None:
                text = f"no type of the reader's union reads data of type {writer.label}"
                yield "missing-union-branch", text, reader_reference.pointer, writer_reference.pointer
            else:
                self._push([(branch, writer_reference)])
        elif reader.kind != writer.kind:
            if (writer.kind, reader.kind) not in _PROMOTIONS:
                text = f"data of type {writer.label} cannot be read as {reader.label}"
                yield "type-mismatch", text, reader_reference.pointer, writer_reference.pointer
        elif reader.kind in NAMED_TYPES and not _has_same_name(reader, writer):
            text = f"data of {writer.label} cannot be read as {reader.label}, which has no such alias"
            yield "name-mismatch", text, reader_reference.pointer, writer_reference.pointer
        elif reader.kind == "record":
            yield from self._records(reader_reference, writer_reference)
        else:
            self._push(list(zip(reader.parts, writer.parts, strict=True)))
            yield from _leaf_differences(reader, writer, reader_reference.pointer, writer_reference.pointer)

    def _push(self, pairs: list[tuple[TypeReference, TypeReference]]) -> None:
        self._pending += reversed(pairs)

    def _records(self, reader_reference: TypeReference, writer_reference: TypeReference) -> Iterator[_Difference]:
        reader, fields = self._reader[reader_reference.type], self._fields_of(writer_reference.type)
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
                yield "reader-field-missing-default", text, field.pointer, writer_reference.pointer
        self._push(pairs)

    def _fields_of(self, record: int) -> dict[str, RecordField]:
        if record not in self._fields:
            self._fields[record] = {field.name: field for field in self._writer[record].fields}
        return self._fields[record]

    def _branch(self, union: TypeReference, writer: AvroType) -> TypeReference | None:
        """The branch that reads a type: one of the same kind and name, or with its alias, else the first promotion."""
        branches = self._branches_of(union.type)
        exact_branch = branches.get((writer.kind, writer.name))
        if exact_branch is not None or writer.kind not in _PROMOTED_KINDS:
            return exact_branch
        order = self._reader[union.type].parts
        return next((branch for branch in order if (writer.kind, self._reader[branch.type].kind) in _PROMOTIONS), None)

    def _branches_of(self, union: int) -> dict[tuple[str, str], TypeReference]:
        if union not in self._branches:
            branches_with_references = [
                (self._reader[reference.type], reference) for reference in self._reader[union].parts
            ]
            branches_by_name = {(branch.kind, branch.name): reference for branch, reference in branches_with_references}
            for branch, reference in branches_with_references:
                for alias in branch.aliases:
                    branches_by_name.setdefault((branch.kind, alias), reference)
            self._branches[union] = branches_by_name
        return self._branches[union]


def _has_same_name(reader: AvroType, writer: AvroType) -> bool:
    """Whether a reader accepts data of a named type as its own type.

    Since 1.9 the specification compares names without namespaces. Here a new namespace is a new name (SC-36); an alias
    makes it compatible, like any other renaming.
    """
    return reader.name == writer.name or writer.name in reader.aliases


def _leaf_differences(
    reader: AvroType, writer: AvroType, reader_pointer: str, writer_pointer: str
) -> Iterator[_Difference]:
    if reader.size != writer.size:
        yield (
            "fixed-size-mismatch",
            f"{writer.size} bytes were written, {reader.size} are read",
            reader_pointer,
            writer_pointer,
        )
    known_symbols = frozenset(reader.symbols)
    if reader.default is None and (
        missing_symbols := [symbol for symbol in writer.symbols if symbol not in known_symbols]
    ):
        text = f"the reader's enum has neither the symbols {', '.join(missing_symbols)[:200]} nor a default"
        yield "missing-enum-symbols", text, reader_pointer, writer_pointer
    if reader.decimal and writer.decimal and not _keeps_decimal(reader.decimal, writer.decimal):
        descriptions = [
            f"precision {precision} and scale {scale}" for precision, scale in (writer.decimal, reader.decimal)
        ]
        yield (
            "decimal-mismatch",
            f"decimals of {descriptions[0]} cannot be read with {descriptions[1]}",
            reader_pointer,
            writer_pointer,
        )


def _keeps_decimal(reader: tuple[int, int], writer: tuple[int, int]) -> bool:
    """Whether decimals keep their values under another precision and scale.

    The specification demands equal numbers. But a higher precision loses nothing, and SC-36 allows wider bounds.
    """
    return reader[1] == writer[1] and reader[0] >= writer[0]

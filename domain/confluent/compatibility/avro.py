"""Avro: schema resolution as Avro's Java library checks it. Names are compared without namespaces.

Rules CSR-805, CSR-806, CSR-808.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.formats.avro.schema import AvroSchema, AvroType, RecordField

#: The kinds (reader, writer) between which values are converted.
_PROMOTIONS: Final = frozenset(
    (reader, writer)
    for reader, writers in {
        "long": ("int",),
        "float": ("int", "long"),
        "double": ("int", "long", "float"),
        "bytes": ("string",),
        "string": ("bytes",),
    }.items()
    for writer in writers
)


def avro_differences(reader: AvroSchema, writer: AvroSchema) -> list[Difference]:
    """The differences that prevent the reader from reading data of the writer, in the order of its document."""
    return _Resolution(reader, writer).compare(reader.root.type, writer.root.type, "")


class _Resolution:
    """Compares pairs of types; each pair once, so recursive types end."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema) -> None:
        self._readers, self._writers = reader.types, writer.types
        self._known: dict[tuple[int, int], list[Difference]] = {}

    def compare(self, reader_index: int, writer_index: int, path: str) -> list[Difference]:
        pair = reader_index, writer_index
        if pair not in self._known:
            self._known[pair] = []  # a pair that is being compared counts as equal
            self._known[pair] = list(
                self._compare(self._readers[reader_index], self._writers[writer_index], pair, path)
            )
        return self._known[pair]

    def _compare(self, reader: AvroType, writer: AvroType, pair: tuple[int, int], path: str) -> Iterator[Difference]:
        if writer.kind == "union":
            for position, branch in enumerate(writer.parts):
                branch_path = f"{path}/{position}" if reader.kind == "union" else path
                yield from self._compare_with_branch(reader, pair[0], branch.type, branch_path)
        elif reader.kind == "union":
            yield from self._compare_with_branch(reader, pair[0], pair[1], path)
        elif reader.kind != writer.kind:
            if (reader.kind, writer.kind) not in _PROMOTIONS:
                yield _type_mismatch(reader, writer, path)
        elif reader.kind in ("record", "enum", "fixed") and not _has_same_name(reader, writer):
            text = f"The name of the schema has changed (path '{path}/name')"
            yield Difference("NAME_MISMATCH", f"{path}/name", text, f"expected: {writer.name}")
        elif reader.kind == "record":
            yield from self._compare_fields(reader, writer, path)
        else:
            yield from _leaf_differences(reader, writer, path)
            member = "items" if reader.kind == "array" else "values"
            for reader_part, writer_part in zip(reader.parts, writer.parts, strict=True):
                yield from self.compare(reader_part.type, writer_part.type, f"{path}/{member}")

    def _compare_with_branch(
        self, reader: AvroType, reader_index: int, writer_index: int, path: str
    ) -> Iterator[Difference]:
        if reader.kind != "union":
            yield from self.compare(reader_index, writer_index, path)
        elif not any(not self.compare(branch.type, writer_index, path) for branch in reader.parts):
            kind = self._writers[writer_index].kind.upper()
            text = (
                f"The {{reader}} schema is missing a type inside a union field at path '{path}' in the"
                " {writer} schema"
            )
            yield Difference("MISSING_UNION_BRANCH", path, text, f"reader union lacking writer type: {kind}")

    def _compare_fields(self, reader: AvroType, writer: AvroType, path: str) -> Iterator[Difference]:
        fields = {field.name: field for field in writer.fields}
        for position, field in enumerate(reader.fields):
            field_path = f"{path}/fields/{position}"
            source = _source_field(field, fields)
            if source is not None:
                yield from self.compare(field.type.type, source.type.type, f"{field_path}/type")
            elif field.required and not self._has_enum_default(field):
                text = (
                    f"The field '{field.name}' at path '{field_path}' in the {{reader}} schema has no default value and"
                    " is missing in the {writer} schema"
                )
                yield Difference("READER_FIELD_MISSING_DEFAULT_VALUE", field_path, text, field.name)

    def _has_enum_default(self, field: RecordField) -> bool:
        type = self._readers[field.type.type]
        return type.kind == "enum" and type.default is not None


def _source_field(field: RecordField, fields: Mapping[str, RecordField]) -> RecordField | None:
    """The written field that a field reads: the one of its name, else the first that one of its aliases names."""
    names = (field.name, *field.aliases)
    return next((fields[name] for name in names if name in fields), None)


def _leaf_differences(reader: AvroType, writer: AvroType, path: str) -> Iterator[Difference]:
    if reader.size != writer.size:
        text = (
            f"The size of FIXED type field at path '{path}/size' in the {{reader}} schema does not match with the"
            " {writer} schema"
        )
        yield Difference("FIXED_SIZE_MISMATCH", f"{path}/size", text, f"expected: {writer.size}, found: {reader.size}")
    missing_symbols = [symbol for symbol in writer.symbols if symbol not in set(reader.symbols)]
    if missing_symbols and reader.default is None:
        text = (
            f"The {{reader}} schema is missing enum symbols '[{', '.join(missing_symbols)}]' at path '{path}/symbols'"
            " in the {writer} schema"
        )
        yield Difference("MISSING_ENUM_SYMBOLS", f"{path}/symbols", text, f"[{', '.join(missing_symbols)}]")


def _type_mismatch(reader: AvroType, writer: AvroType, path: str) -> Difference:
    text = (
        f"The type (path '{path or '/'}') of a field in the {{reader}} schema does not match with the {{writer}} schema"
    )
    info = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    return Difference("TYPE_MISMATCH", path or "/", text, info)


def _has_same_name(reader: AvroType, writer: AvroType) -> bool:
    return reader.name.rpartition(".")[2] == writer.name.rpartition(".")[2] or writer.name in reader.aliases

"""Finds reasons why data written with one Protobuf document cannot be read with another.

Some rules hold between reader and writer, whichever is older: no required field may be missing, a oneof must be able to
hold what is written, and types must be equal on the wire. Other rules depend on which document is newer, because the
same difference is allowed as an addition and refused as a removal (SC-36): a field may be added, but removed only if
its number and name become reserved; a type may widen but not narrow; an enum value may be added but not removed.
Spec: Protobuf documentation, "Updating A Message Type"; SC-36, which wins where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from annals.domain.formats.contract import Incompatibility, NewerSide
from annals.domain.formats.protobuf.model import (
    ProtoDocument,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    ProtoMethod,
    Reservations,
    ReservedRange,
)
from annals.domain.formats.protobuf.wire_types import is_same_type, is_wider, may_become_repeated, reads_as_zero


def find_incompatibilities(
    reader: ProtoDocument, writer: ProtoDocument, newer: NewerSide | None, limit: int
) -> list[Incompatibility]:
    """At most `limit` reasons why data of the writer cannot be read; O(elements of both).

    newer: which document replaces the other. None: unknown; then everything is allowed that either order allows.
    """
    if newer is None:
        as_reader = find_incompatibilities(reader, writer, "reader", limit)
        return as_reader and min(as_reader, find_incompatibilities(reader, writer, "writer", limit), key=len)
    pair = _DocumentPair(reader, writer, newer)
    return list(islice(_differences(pair), limit))


@dataclass(frozen=True, slots=True)
class _DocumentPair:
    """Two documents as reader and writer, and as older and newer one."""

    reader: ProtoDocument
    writer: ProtoDocument
    newer: NewerSide

    @property
    def newer_document(self) -> ProtoDocument:
        return self.reader if self.newer == "reader" else self.writer

    @property
    def older_document(self) -> ProtoDocument:
        return self.writer if self.newer == "reader" else self.reader

    def incompatibility(self, rule: str, text: str, reader: int | None, writer: int | None) -> Incompatibility:
        return Incompatibility(rule, text, self.reader.location(reader), self.writer.location(writer))

    def change(self, rule: str, text: str, before: int | None, after: int | None) -> Incompatibility:
        """An incompatibility with lines in the older and the newer document."""
        return self.incompatibility(rule, text, *((after, before) if self.newer == "reader" else (before, after)))


def _differences(pair: _DocumentPair) -> Iterator[Incompatibility]:
    before, after = pair.older_document, pair.newer_document
    if before.package != after.package:
        text = f'the package is "{before.package}" in the older document and "{after.package}" in the newer one'
        yield pair.change("package-changed", text, before.package_line, after.package_line)
        return  # a new package renames every type
    for name, message in before.messages.items():
        other = after.messages.get(name)
        if other is None:
            if not message.is_map_entry:
                yield pair.change("message-removed", f"message {name} was removed or renamed", message.line, None)
        elif not message.is_map_entry and not other.is_map_entry:
            yield from _compare_messages(pair, message, other)
    for name, enum in before.enums.items():
        if (other_enum := after.enums.get(name)) is None:
            yield pair.change("enum-removed", f"enum {name} was removed or renamed", enum.line, None)
        else:
            yield from _compare_enums(pair, enum, other_enum)
    yield from _compare_services(pair)


def _compare_messages(pair: _DocumentPair, before: ProtoMessage, after: ProtoMessage) -> Iterator[Incompatibility]:
    names = {field.name: field for field in after.fields.values()}
    for number, field in before.fields.items():
        other, namesake = after.fields.get(number), names.get(field.name)
        if namesake is not None and namesake.number != number:
            text = f'field "{field.name}" of {before.name} had number {number} and has {namesake.number}'
            yield pair.change("field-number-changed", text, field.line, namesake.line)
        elif other is None:
            yield from _compare_removed(pair, field, before, after)
        else:
            yield from _compare_fields(pair, field, other, before)
    known = {field.name for field in before.fields.values()}
    for number, field in after.fields.items():
        if number not in before.fields:
            yield from _compare_added(pair, field, before, after)
        if field.name not in known and field.name in before.reserved.names:
            text = f'{before.name} had reserved the name "{field.name}"'
            yield pair.change("reserved-name-used", text, before.reserved.names[field.name], field.line)
    yield from _compare_reservations(pair, before.name, before.reserved, after.reserved, after.fields, names)
    yield from _compare_oneofs(pair, *((after, before) if pair.newer == "reader" else (before, after)))


def _compare_removed(
    pair: _DocumentPair, field: ProtoField, before: ProtoMessage, after: ProtoMessage
) -> Iterator[Incompatibility]:
    subject = f'field {field.number} "{field.name}" of {before.name}'
    if pair.newer == "writer":
        # SC-36 allows a removal for backward compatibility only, although a reader would use the field's default.
        rule, text = "field-removed", f"{subject} is read, but no longer written"
        if field.required:
            rule, text = "required-field-missing", f"{subject} is required by the reader and not known to the writer"
        yield pair.change(rule, text, field.line, after.line)
        return
    unreserved = [] if after.reserved.range_of(field.number) else ["number"]
    # The name of an extension is not in the message's scope, so the message cannot reserve it.
    unreserved += [] if field.extension or field.name in after.reserved.names else ["name"]
    if unreserved:
        text = f"{subject} was removed and its {' and '.join(unreserved)} not reserved"
        yield pair.change("field-removed-not-reserved", text, field.line, after.line)


def _compare_added(
    pair: _DocumentPair, field: ProtoField, before: ProtoMessage, after: ProtoMessage
) -> Iterator[Incompatibility]:
    subject = f'field {field.number} "{field.name}" of {before.name}'
    if reserved_range := before.reserved.range_of(field.number):
        yield pair.change(
            "reserved-number-used", f"{subject} takes a number that was reserved", reserved_range.line, field.line
        )
    if field.required and pair.newer == "reader":
        text = f"{subject} is required by the reader and not known to the writer"
        yield pair.change("required-field-missing", text, before.line, field.line)


def _compare_fields(
    pair: _DocumentPair, before: ProtoField, after: ProtoField, message: ProtoMessage
) -> Iterator[Incompatibility]:
    """Compares a field that has its number in both documents."""
    subject = f"field {before.number} of {message.name}"
    reader, writer = (after, before) if pair.newer == "reader" else (before, after)
    if reader.required and not writer.required:
        text = f"{subject} is required by the reader and may be left out by the writer"
        yield pair.incompatibility("required-field-optional", text, reader.line, writer.line)
    if not may_become_repeated(before, after):
        old_cardinality, new_cardinality = ("repeated" if field.repeated else "singular" for field in (before, after))
        text = f"{subject} was {old_cardinality} and is {new_cardinality}, which {before.kind} does not allow"
        yield pair.change("field-cardinality-changed", text, before.line, after.line)
    entries = pair.older_document.messages.get(before.type), pair.newer_document.messages.get(after.type)
    if any(entry is not None and entry.is_map_entry for entry in entries):
        yield from _compare_entries(pair, before, after, entries, subject)
    elif not is_wider(before, after, pair.older_document, pair.newer_document):
        text = (
            f"{subject} was {_type_text(before)} and is {_type_text(after)}, which is not as wide or not the"
            " same on the wire"
        )
        yield pair.change("field-type-changed", text, before.line, after.line)
    elif writer.implicit and not (reader.implicit or reader.repeated) and not reads_as_zero(reader, pair.reader):
        text = f"{subject} is not written when it is zero, and then read as another default"
        yield pair.incompatibility("default-not-zero", text, reader.line, writer.line)


def _compare_entries(
    pair: _DocumentPair,
    before: ProtoField,
    after: ProtoField,
    entries: tuple[ProtoMessage | None, ProtoMessage | None],
    subject: str,
) -> Iterator[Incompatibility]:
    """Compares map entries. A map is a repeated message with key and value, so each may replace the other."""
    old_entry, new_entry = entries
    if old_entry is None or new_entry is None or {before.kind, after.kind} != {"message"}:
        text = f"{subject} was {_type_text(before, old_entry)} and is {_type_text(after, new_entry)}"
        yield pair.change("field-type-changed", text, before.line, after.line)
        return
    for incompatibility in _compare_messages(pair, old_entry, new_entry):
        yield pair.change(incompatibility.rule, f"{subject}, a map: {incompatibility.text}", before.line, after.line)


def _type_text(field: ProtoField, message: ProtoMessage | None = None) -> str:
    return "a map" if message is not None and message.is_map_entry else field.type or field.kind


def _compare_oneofs(pair: _DocumentPair, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[Incompatibility]:
    """Refuses a oneof with fields that can be written together: the reader would keep only the last of them."""
    fields_by_oneof: dict[str, dict[str | int, ProtoField]] = {}
    for number, field in reader.fields.items():
        other = writer.fields.get(number)
        if field.oneof and other is not None:
            fields_by_oneof.setdefault(field.oneof, {}).setdefault(other.oneof or number, field)
    for oneof, separate_fields in fields_by_oneof.items():
        if len(separate_fields) > 1:
            numbers = " and ".join(str(field.number) for field in islice(separate_fields.values(), 2))
            text = f'oneof "{oneof}" of {reader.name} holds one of the fields {numbers}, which can be written together'
            first = next(iter(separate_fields.values()))
            yield pair.incompatibility("oneof-joins-fields", text, first.line, writer.fields[first.number].line)


def _compare_enums(pair: _DocumentPair, before: ProtoEnum, after: ProtoEnum) -> Iterator[Incompatibility]:
    for number, value in before.values.items():
        new_number = after.numbers.get(value.name)
        if new_number is not None and new_number != number:
            text = f'value "{value.name}" of {before.name} had number {number} and has {new_number}'
            yield pair.change("enum-number-changed", text, value.line, after.values[new_number].line)
        elif number not in after.values:
            # SC-36 knows no reservation of values: the name of a written number must not disappear.
            text = f'value {number} "{value.name}" of {before.name} was removed'
            yield pair.change("enum-value-removed", text, value.line, after.line)
    for number, value in after.values.items():
        if number not in before.values and (reserved_range := before.reserved.range_of(number)):
            text = f'value {number} "{value.name}" of {before.name} takes a number that was reserved'
            yield pair.change("reserved-number-used", text, reserved_range.line, value.line)
    for name, number in after.numbers.items():
        if name in before.reserved.names:
            text = f'{before.name} had reserved the name "{name}"'
            yield pair.change("reserved-name-used", text, before.reserved.names[name], after.values[number].line)
    yield from _compare_reservations(pair, before.name, before.reserved, after.reserved, after.values, after.numbers)


def _compare_reservations(
    pair: _DocumentPair,
    name: str,
    before: Reservations,
    after: Reservations,
    numbers: Mapping[int, object],
    names: Mapping[str, object],
) -> Iterator[Incompatibility]:
    """Reports removed reservations, because a later document could reuse them; those in use are reported elsewhere."""
    for reserved_range in before.ranges:
        number = _first_uncovered(reserved_range, after, numbers)
        if number is not None:
            text = f"{name} does not reserve number {number} any more"
            yield pair.change("reservation-removed", text, reserved_range.line, None)
    for reserved_name, line in before.names.items():
        if reserved_name not in after.names and reserved_name not in names:
            yield pair.change(
                "reservation-removed", f'{name} does not reserve the name "{reserved_name}" any more', line, None
            )


def _first_uncovered(reserved_range: ReservedRange, after: Reservations, numbers: Mapping[int, object]) -> int | None:
    """The first number of a range that is neither reserved nor used; None where there is none."""
    number = reserved_range.first
    while number <= reserved_range.last:
        if covering_range := after.range_of(number):
            number = covering_range.last + 1
        elif number in numbers:
            number += 1
        else:
            return number
    return None


def _compare_services(pair: _DocumentPair) -> Iterator[Incompatibility]:
    """Compares services: a method may be added, but not removed, and its types must not change."""
    for name, service in pair.older_document.services.items():
        new_service = pair.newer_document.services.get(name)
        if new_service is None:
            yield pair.change("service-removed", f"service {name} was removed or renamed", service.line, None)
            continue
        for method in service.methods.values():
            subject = f"method {method.name} of {name}"
            new_method = new_service.methods.get(method.name)
            if new_method is None:
                yield pair.change("method-removed", f"{subject} was removed or renamed", method.line, new_service.line)
            elif not _is_same_method(pair, method, new_method):
                yield pair.change(
                    "method-changed", f"{subject} has another input or output", method.line, new_method.line
                )


def _is_same_method(pair: _DocumentPair, before: ProtoMethod, after: ProtoMethod) -> bool:
    return before.streams == after.streams and all(
        is_same_type(old_type, new_type, pair.older_document, pair.newer_document)
        for old_type, new_type in zip(before.types, after.types, strict=True)
    )

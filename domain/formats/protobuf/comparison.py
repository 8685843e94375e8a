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

from domain.formats.contract import MAX_INCOMPATIBILITIES, Incompatibility, NewerSide
from domain.formats.protobuf.model import (
    ProtoDocument,
    ProtoEnum,
    ProtoField,
    ProtoMessage,
    ProtoMethod,
    Reservations,
    ReservedRange,
)
from domain.formats.protobuf.wire_types import is_same_type, is_wider, may_become_repeated, reads_as_zero


def find_incompatibilities(
    reader: ProtoDocument, writer: ProtoDocument, newer: NewerSide | None
) -> list[Incompatibility]:
    """At most MAX_INCOMPATIBILITIES reasons why data of the writer cannot be read; O(elements of both).

    newer: which document replaces the other. None: unknown; then everything is allowed that either order allows.
    """
    if newer is None:
        either = find_incompatibilities(reader, writer, "reader")
        return either and min(either, find_incompatibilities(reader, writer, "writer"), key=len)
    pair = _DocumentPair(reader, writer, newer)
    return list(islice(_differences(pair), MAX_INCOMPATIBILITIES))


@dataclass(frozen=True, slots=True)
class _DocumentPair:
    """Two documents as reader and writer, and as older and newer one."""

    reader: ProtoDocument
    writer: ProtoDocument
    newer: NewerSide

    @property
    def after(self) -> ProtoDocument:
        return self.reader if self.newer == "reader" else self.writer

    @property
    def before(self) -> ProtoDocument:
        return self.writer if self.newer == "reader" else self.reader

    def found(self, rule: str, text: str, reader: int | None, writer: int | None) -> Incompatibility:
        return Incompatibility(rule, text, self.reader.location(reader), self.writer.location(writer))

    def changed(self, rule: str, text: str, before: int | None, after: int | None) -> Incompatibility:
        """An incompatibility with lines in the older and the newer document."""
        return self.found(rule, text, *((after, before) if self.newer == "reader" else (before, after)))


def _differences(pair: _DocumentPair) -> Iterator[Incompatibility]:
    before, after = pair.before, pair.after
    if before.package != after.package:
        text = f'the package is "{before.package}" in the older document and "{after.package}" in the newer one'
        yield pair.changed("package-changed", text, before.package_line, after.package_line)
        return  # a new package renames every type
    for name, message in before.messages.items():
        other = after.messages.get(name)
        if other is None:
            if not message.entry:
                yield pair.changed("message-removed", f"message {name} was removed or renamed", message.line, None)
        elif not message.entry and not other.entry:
            yield from _messages(pair, message, other)
    for name, enum in before.enums.items():
        if (other_enum := after.enums.get(name)) is None:
            yield pair.changed("enum-removed", f"enum {name} was removed or renamed", enum.line, None)
        else:
            yield from _enums(pair, enum, other_enum)
    yield from _services(pair)


def _messages(pair: _DocumentPair, before: ProtoMessage, after: ProtoMessage) -> Iterator[Incompatibility]:
    names = {field.name: field for field in after.fields.values()}
    for number, field in before.fields.items():
        other, namesake = after.fields.get(number), names.get(field.name)
        if namesake is not None and namesake.number != number:
            text = f'field "{field.name}" of {before.name} had number {number} and has {namesake.number}'
            yield pair.changed("field-number-changed", text, field.line, namesake.line)
        elif other is None:
            yield from _removed(pair, field, before, after)
        else:
            yield from _fields(pair, field, other, before)
    known = {field.name for field in before.fields.values()}
    for number, field in after.fields.items():
        if number not in before.fields:
            yield from _added(pair, field, before, after)
        if field.name not in known and field.name in before.reserved.names:
            text = f'{before.name} had reserved the name "{field.name}"'
            yield pair.changed("reserved-name-used", text, before.reserved.names[field.name], field.line)
    yield from _reservations(pair, before.name, before.reserved, after.reserved, after.fields, names)
    yield from _oneofs(pair, *((after, before) if pair.newer == "reader" else (before, after)))


def _removed(
    pair: _DocumentPair, field: ProtoField, before: ProtoMessage, after: ProtoMessage
) -> Iterator[Incompatibility]:
    what = f'field {field.number} "{field.name}" of {before.name}'
    if pair.newer == "writer":
        # SC-36 allows a removal for backward compatibility only, although a reader would use the field's default.
        rule, text = "field-removed", f"{what} is read, but no longer written"
        if field.required:
            rule, text = "required-field-missing", f"{what} is required by the reader and not known to the writer"
        yield pair.changed(rule, text, field.line, after.line)
        return
    missing = [] if after.reserved.range_of(field.number) else ["number"]
    # The name of an extension is not in the message's scope, so the message cannot reserve it.
    missing += [] if field.extension or field.name in after.reserved.names else ["name"]
    if missing:
        text = f"{what} was removed and its {' and '.join(missing)} not reserved"
        yield pair.changed("field-removed-not-reserved", text, field.line, after.line)


def _added(
    pair: _DocumentPair, field: ProtoField, before: ProtoMessage, after: ProtoMessage
) -> Iterator[Incompatibility]:
    what = f'field {field.number} "{field.name}" of {before.name}'
    if held := before.reserved.range_of(field.number):
        yield pair.changed("reserved-number-used", f"{what} takes a number that was reserved", held.line, field.line)
    if field.required and pair.newer == "reader":
        text = f"{what} is required by the reader and not known to the writer"
        yield pair.changed("required-field-missing", text, before.line, field.line)


def _fields(
    pair: _DocumentPair, before: ProtoField, after: ProtoField, message: ProtoMessage
) -> Iterator[Incompatibility]:
    """Compares a field that has its number in both documents."""
    what = f"field {before.number} of {message.name}"
    reader, writer = (after, before) if pair.newer == "reader" else (before, after)
    if reader.required and not writer.required:
        text = f"{what} is required by the reader and may be left out by the writer"
        yield pair.found("required-field-optional", text, reader.line, writer.line)
    if not may_become_repeated(before, after):
        was, now = ("repeated" if one.repeated else "singular" for one in (before, after))
        text = f"{what} was {was} and is {now}, which {before.kind} does not allow"
        yield pair.changed("field-cardinality-changed", text, before.line, after.line)
    entries = pair.before.messages.get(before.type), pair.after.messages.get(after.type)
    if any(entry is not None and entry.entry for entry in entries):
        yield from _entries(pair, before, after, entries, what)
    elif not is_wider(before, after, pair.before, pair.after):
        text = f"{what} was {_type(before)} and is {_type(after)}, which is not as wide or not the same on the wire"
        yield pair.changed("field-type-changed", text, before.line, after.line)
    elif writer.implicit and not (reader.implicit or reader.repeated) and not reads_as_zero(reader, pair.reader):
        text = f"{what} is not written when it is zero, and then read as another default"
        yield pair.found("default-not-zero", text, reader.line, writer.line)


def _entries(
    pair: _DocumentPair,
    before: ProtoField,
    after: ProtoField,
    entries: tuple[ProtoMessage | None, ProtoMessage | None],
    what: str,
) -> Iterator[Incompatibility]:
    """Compares map entries. A map is a repeated message with key and value, so each may replace the other."""
    older, newer = entries
    if older is None or newer is None or {before.kind, after.kind} != {"message"}:
        text = f"{what} was {_type(before, older)} and is {_type(after, newer)}"
        yield pair.changed("field-type-changed", text, before.line, after.line)
        return
    for found in _messages(pair, older, newer):
        yield pair.changed(found.rule, f"{what}, a map: {found.text}", before.line, after.line)


def _type(field: ProtoField, message: ProtoMessage | None = None) -> str:
    return "a map" if message is not None and message.entry else field.type or field.kind


def _oneofs(pair: _DocumentPair, reader: ProtoMessage, writer: ProtoMessage) -> Iterator[Incompatibility]:
    """Refuses a oneof with fields that can be written together: the reader would keep only the last of them."""
    held: dict[str, dict[str | int, ProtoField]] = {}
    for number, field in reader.fields.items():
        other = writer.fields.get(number)
        if field.oneof and other is not None:
            held.setdefault(field.oneof, {}).setdefault(other.oneof or number, field)
    for oneof, apart in held.items():
        if len(apart) > 1:
            numbers = " and ".join(str(field.number) for field in islice(apart.values(), 2))
            text = f'oneof "{oneof}" of {reader.name} holds one of the fields {numbers}, which can be written together'
            first = next(iter(apart.values()))
            yield pair.found("oneof-joins-fields", text, first.line, writer.fields[first.number].line)


def _enums(pair: _DocumentPair, before: ProtoEnum, after: ProtoEnum) -> Iterator[Incompatibility]:
    for number, value in before.values.items():
        now = after.numbers.get(value.name)
        if now is not None and now != number:
            text = f'value "{value.name}" of {before.name} had number {number} and has {now}'
            yield pair.changed("enum-number-changed", text, value.line, after.values[now].line)
        elif number not in after.values:
            # SC-36 knows no reservation of values: the name of a written number must not disappear.
            text = f'value {number} "{value.name}" of {before.name} was removed'
            yield pair.changed("enum-value-removed", text, value.line, after.line)
    for number, value in after.values.items():
        if number not in before.values and (held := before.reserved.range_of(number)):
            text = f'value {number} "{value.name}" of {before.name} takes a number that was reserved'
            yield pair.changed("reserved-number-used", text, held.line, value.line)
    for name, number in after.numbers.items():
        if name in before.reserved.names:
            text = f'{before.name} had reserved the name "{name}"'
            yield pair.changed("reserved-name-used", text, before.reserved.names[name], after.values[number].line)
    yield from _reservations(pair, before.name, before.reserved, after.reserved, after.values, after.numbers)


def _reservations(
    pair: _DocumentPair,
    name: str,
    before: Reservations,
    after: Reservations,
    numbers: Mapping[int, object],
    names: Mapping[str, object],
) -> Iterator[Incompatibility]:
    """Reports removed reservations, because a later document could reuse them; those in use are reported elsewhere."""
    for held in before.ranges:
        number = _uncovered(held, after, numbers)
        if number is not None:
            text = f"{name} does not reserve number {number} any more"
            yield pair.changed("reservation-removed", text, held.line, None)
    for kept, line in before.names.items():
        if kept not in after.names and kept not in names:
            yield pair.changed("reservation-removed", f'{name} does not reserve the name "{kept}" any more', line, None)


def _uncovered(held: ReservedRange, after: Reservations, numbers: Mapping[int, object]) -> int | None:
    """The first number of a range that is neither reserved nor used; None where there is none."""
    number = held.first
    while number <= held.last:
        if cover := after.range_of(number):
            number = cover.last + 1
        elif number in numbers:
            number += 1
        else:
            return number
    return None


def _services(pair: _DocumentPair) -> Iterator[Incompatibility]:
    """Compares services: a method may be added, but not removed, and its types must not change."""
    for name, service in pair.before.services.items():
        other = pair.after.services.get(name)
        if other is None:
            yield pair.changed("service-removed", f"service {name} was removed or renamed", service.line, None)
            continue
        for method in service.methods.values():
            what = f"method {method.name} of {name}"
            now = other.methods.get(method.name)
            if now is None:
                yield pair.changed("method-removed", f"{what} was removed or renamed", method.line, other.line)
            elif not _same(pair, method, now):
                yield pair.changed("method-changed", f"{what} has another input or output", method.line, now.line)


def _same(pair: _DocumentPair, before: ProtoMethod, after: ProtoMethod) -> bool:
    return before.streams == after.streams and all(
        is_same_type(one, other, pair.before, pair.after) for one, other in zip(before.types, after.types, strict=True)
    )

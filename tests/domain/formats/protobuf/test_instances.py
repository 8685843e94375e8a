"""Messages of one document are read with another: generated documents and messages, with Google's library.

If a change is backward compatible, every message of the older document has to keep its values under the newer one. If
it is forward compatible, messages of the newer document have to keep their values under the older one, as long as both
documents can hold these values: SC-36 allows a type to widen in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import event, given, settings
from hypothesis import strategies as st

from annals.domain.formats import protobuf
from tests.support.examples import examples

SCALARS = (
    *("bool", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "sfixed32", "fixed64", "sfixed64"),
    *("float", "double", "string", "bytes"),
)
TYPES = (*SCALARS, "E", "N", "Pair", "map<string, int32>", "map<string, int64>")
LABELS = ("", "optional", "required", "repeated")
ZEROS = {"string": '""', "bytes": '""', "bool": "false"}
DEFAULTS = {"string": '"x"', "bytes": '"x"', "bool": "true", "E": "E_ONE"}


@dataclass(frozen=True)
class Spec:
    """A field of M. oneof: whether it is in the oneof of M; default: whether it has a default other than zero."""

    type: str
    label: str
    oneof: bool
    default: bool
    packed: bool | None

    def text(self, number: int, language: int) -> str:
        label, options = self.label, []
        if self.type.startswith("map") or self.oneof:
            label = ""
        elif language == 2:
            label = label or "optional"
        elif label == "required":
            label = ""
        single = label != "repeated" and not self.type.startswith("map")
        if self.default and language == 2 and single and self.type not in ("N", "Pair"):
            options.append(f"default = {DEFAULTS.get(self.type, 1)}")
        if self.packed is not None and label == "repeated" and self.type not in ("string", "bytes", "N", "Pair"):
            options.append(f"packed = {str(self.packed).lower()}")
        suffix = f" [{', '.join(options)}]" if options else ""
        return f"{label} {self.type} field_{number} = {number}{suffix}; "


specs = st.builds(
    Spec,
    st.sampled_from(TYPES),
    st.sampled_from(LABELS),
    st.booleans(),
    st.booleans(),
    st.sampled_from((None, True, False)),
)


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, int, str, int]:
    """Draws an older document with its language, and a newer one with some changes."""
    before = {number: draw(specs) for number in range(1, draw(st.integers(2, 4)))}
    after = dict(before)
    for number in draw(st.sets(st.sampled_from(sorted(before)), max_size=2)):
        spec = before[number]
        after[number] = draw(
            st.sampled_from(
                (
                    replace(spec, type=draw(st.sampled_from(TYPES))),
                    replace(spec, label=draw(st.sampled_from(LABELS))),
                    replace(spec, oneof=not spec.oneof),
                    replace(spec, default=not spec.default, packed=draw(st.sampled_from((None, True, False)))),
                )
            )
        )
    removed = draw(st.sets(st.sampled_from(sorted(before)), max_size=1))
    if draw(st.booleans()):
        after[9] = draw(specs)
    language = draw(st.sampled_from((2, 3)))
    newer = draw(st.sampled_from((language, language, 5 - language)))
    values = draw(st.sampled_from(("", " E_TWO = 2;", " E_MINUS = -1;")))
    more = draw(st.sampled_from(("", " E_NINE = 9;")))
    remaining = {number: spec for number, spec in after.items() if number not in removed}
    return document(before, language, values), language, document(remaining, newer, values + more, removed), newer


def document(
    fields: dict[int, Spec], language: int, values: str, removed: frozenset[int] | set[int] = frozenset()
) -> str:
    chosen = {number: spec for number, spec in fields.items() if spec.oneof and spec.label != "repeated"}
    chosen = {number: spec for number, spec in chosen.items() if not spec.type.startswith("map")}
    plain = {number: replace(spec, oneof=False) for number, spec in fields.items() if number not in chosen}
    label = "optional " if language == 2 else ""
    inner = "".join(spec.text(number, language) for number, spec in chosen.items())
    return (
        f'syntax = "proto{language}"; enum E {{ E_ZERO = 0; E_ONE = 1;{values} }} message N {{ {label}int32 x = 1; }} '
        f"message Pair {{ {label}string key = 1; {label}int32 value = 2; }} message M {{ "
        + "".join(spec.text(number, language) for number, spec in plain.items())
        + (f"oneof o {{ {inner}}} " if inner else "")
        + "".join(f'reserved {number}; reserved "field_{number}"; ' for number in removed)
        + "}"
    )


@settings(max_examples=examples(400), deadline=None)
@given(changes(), st.data())
def test_backward_keeps_what_the_older_document_writes(change: tuple[str, int, str, int], data: st.DataObject) -> None:
    older, newer = both(change)
    allowed = not protobuf.incompatibilities(reader=newer, writer=older, newer="reader")
    event(f"backward {allowed}")
    if allowed:
        keeps(written(older, data, None), message(newer))


@settings(max_examples=examples(400), deadline=None)
@given(changes(), st.data())
def test_forward_keeps_what_both_have_room_for(change: tuple[str, int, str, int], data: st.DataObject) -> None:
    older, newer = both(change)
    allowed = not protobuf.incompatibilities(reader=older, writer=newer, newer="writer")
    event(f"forward {allowed}")
    if allowed:
        keeps(written(newer, data, older), message(older))


def both(change: tuple[str, int, str, int]) -> tuple[protobuf.ProtoDocument, protobuf.ProtoDocument]:
    older, language, newer, other = change
    return (
        protobuf.parse(older.encode(), f"protobuf/{language}"),
        protobuf.parse(newer.encode(), f"protobuf/{other}"),
    )


def message(document: protobuf.ProtoDocument) -> Any:
    """Returns an empty message M of a document."""
    pool = DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(document.descriptor))
    return GetMessageClass(pool.FindMessageTypeByName("M"))()


def written(document: protobuf.ProtoDocument, data: st.DataObject, limit: protobuf.ProtoDocument | None) -> Any:
    """Draws a message of a document; with `limit`, one with values that this other document can hold too."""
    made = message(document)
    enum = sorted(set(document.enums["E"].values) & set((limit or document).enums["E"].values))
    for field in made.DESCRIPTOR.fields:
        value = values(field, enum, limit is not None)
        held = getattr(made, field.name)
        if is_map(field):
            held.update(data.draw(st.dictionaries(st.text("ab", max_size=2), value, max_size=1 if limit else 2)))
        elif field.is_repeated:
            many = data.draw(st.lists(value, max_size=1 if limit else 3, unique_by=str))
            for one in many:
                put(held, one) if field.message_type else held.append(one)
        elif field.is_required or data.draw(st.booleans()):
            one = data.draw(value)
            if field.message_type:
                held.SetInParent()
                fill(held, one)
            else:
                setattr(made, field.name, one)
    return made


def values(field: Any, enum: list[int], careful: bool) -> st.SearchStrategy[Any]:
    field = field.message_type.fields_by_number[2] if is_map(field) else field
    if field.message_type:
        return st.integers(0, 1) if careful else st.integers(-(2**31), 2**31 - 1)
    if field.enum_type:
        return st.sampled_from(enum)
    bits = {field.CPPTYPE_INT32: 31, field.CPPTYPE_UINT32: 32, field.CPPTYPE_INT64: 63, field.CPPTYPE_UINT64: 64}
    if field.cpp_type in bits:
        size, signed = bits[field.cpp_type], field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64)
        return st.integers(0, 1) if careful else st.integers(-(2**size) if signed else 0, 2**size - 1)
    if field.cpp_type == field.CPPTYPE_BOOL:
        return st.booleans()
    if field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return st.floats(width=32, allow_nan=False)
    if field.type == field.TYPE_STRING:
        return st.text(st.characters(codec="utf-8"), max_size=3)
    # Bytes that are also valid as text and as a message N, because the older document may declare these types.
    return st.sampled_from((b"", b"\x08\x01")) if careful else st.binary(max_size=3)


def put(held: Any, value: int) -> None:
    fill(held.add(), value)


def fill(inner: Any, value: int) -> None:
    """Sets the value of a message N or Pair."""
    if inner.DESCRIPTOR.name == "Pair":
        inner.key, inner.value = f"k{value}", value
    else:
        inner.x = value


def keeps(made: Any, read: Any) -> None:
    read.MergeFromString(made.SerializeToString())
    assert read.IsInitialized()
    for field in made.DESCRIPTOR.fields:
        other = read.DESCRIPTOR.fields_by_number.get(field.number)
        if other is None:
            continue
        was, now = plain(made, field), plain(read, other)
        if field.message_type and not other.message_type:
            now = [decoded(made, field, one) for one in now]
        elif other.message_type and not field.message_type:
            was = [decoded(read, other, one) for one in was]
        if is_map(field) or is_map(other):
            was, now = sorted(was), sorted(now)
        without_presence = not field.is_repeated and not field.has_presence
        if was and not (without_presence and is_zero(was)):
            assert now == was, field.name
            continue
        # The field is not on the wire: the reader may find no value or zero; a zero must not become another default.
        assert not now or is_zero(now), field.name
        if without_presence and not other.is_repeated:
            assert is_zero([atom(getattr(read, other.name))]), field.name


def is_zero(values: list[Any]) -> bool:
    return values == [type(values[0])()]


def plain(made: Any, field: Any) -> list[Any]:
    """Returns the values of a field, in a form that is the same for all types that can hold them."""
    held = getattr(made, field.name)
    if is_map(field):
        return [(key.encode(), value) for key, value in held.items()]
    if field.is_repeated:
        return [atom(one) for one in held]
    if field.has_presence and not made.HasField(field.name):
        return []
    return [atom(held)]


def atom(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        return value.encode()
    if hasattr(value, "DESCRIPTOR"):
        return (value.key.encode(), value.value) if value.DESCRIPTOR.name == "Pair" else ("x", value.x)
    return value


def decoded(made: Any, field: Any, encoded: bytes) -> Any:
    """Returns the message that was written as a field of bytes, in a form that is the same for all types."""
    return atom(GetMessageClass(field.message_type).FromString(encoded))


def is_map(field: Any) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)

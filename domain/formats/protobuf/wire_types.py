"""Which types of fields can stand for each other on the wire.

Spec: Protobuf documentation, "Updating A Message Type". It calls types compatible that lose values, such as `int64`
read as `int32`, and leaves it to the reader's care; here a field may only widen (SC-36): every value of the older type
has to be one of the newer, written in the same way.
"""

from __future__ import annotations

from typing import Final

from domain.formats.protobuf.model import ProtoDocument, ProtoField

_WIDER: Final = {
    "bool": frozenset(("int32", "uint32", "int64", "uint64")),
    "int32": frozenset(("int64",)),
    "uint32": frozenset(("int64", "uint64")),
    "sint32": frozenset(("sint64",)),
    "string": frozenset(("bytes",)),
    # The bytes are then the encoded message.
    "message": frozenset(("bytes",)),
}
_SIGNED: Final = frozenset(("int32", "int64"))
_UNSIGNED: Final = frozenset(("uint32", "uint64"))
_NAMED: Final = frozenset(("message", "group", "enum", "opaque"))
#: Kinds of which a repeated field is never packed, so that a reader of one takes the last of many.
_ONE_BY_ONE: Final = frozenset(("string", "bytes", "message"))


def is_wider(older: ProtoField, newer: ProtoField, before: ProtoDocument, after: ProtoDocument) -> bool:
    """Whether the newer type has every value of the older one, and they are the same on the wire."""
    if older.kind in _NAMED and newer.kind in _NAMED:
        alike = older.kind == newer.kind or "opaque" in (older.kind, newer.kind)
        return alike and is_same_type(older.type, newer.type, before, after)
    if older.kind == "enum":
        enum = before.enums.get(older.type)
        negative = enum is None or min(enum.values) < 0
        return newer.kind in _SIGNED or (newer.kind in _UNSIGNED and not negative)
    if newer.kind == "enum":
        # An open enum holds every number; a closed one puts those aside that it does not name.
        enum = after.enums.get(newer.type)
        return older.kind == "int32" and enum is not None and not enum.closed
    return older.kind == newer.kind or newer.kind in _WIDER.get(older.kind, ())


def is_same_type(one: str, other: str, before: ProtoDocument, after: ProtoDocument) -> bool:
    """Whether two names mean one type.

    Names of types that are not here are known as they are written, perhaps without the packages around them, so that
    one may be the end of the other.
    """
    if one == other:
        return True
    if one in before.opaque or other in after.opaque:
        return one.endswith(f".{other}") or other.endswith(f".{one}")
    return False


def may_become_repeated(older: ProtoField, newer: ProtoField) -> bool:
    """Whether one value may become many: each reader understands the other, but for numbers in packed form."""
    return older.repeated == newer.repeated or (
        newer.repeated and (newer.kind in _ONE_BY_ONE or (newer.kind not in ("opaque", "group") and not newer.packed))
    )


def reads_as_zero(field: ProtoField, parsed: ProtoDocument) -> bool:
    """Whether a field that is not written reads as zero, false or empty."""
    if field.kind == "enum":
        enum = parsed.enums.get(field.type)
        if enum is None:
            return field.default is None
        return (enum.first if field.default is None else enum.numbers.get(field.default, 0)) == 0
    if field.kind in ("string", "bytes"):
        return not field.default
    if field.kind in ("message", "group", "opaque") or field.default is None:
        return True
    return field.default == "false" or _is_zero(field.default)


def _is_zero(number: str) -> bool:
    try:
        return float(number) == 0
    except ValueError:
        return False

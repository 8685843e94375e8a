"""Decides which field types can replace each other on the wire.

Spec: Protobuf documentation, "Updating A Message Type". It also calls types compatible that may lose values, such as
`int64` read as `int32`. Here a field may only widen (SC-36): every value of the older type must be a value of the newer
one, with the same encoding.
"""

from __future__ import annotations

from typing import Final

from annals.domain.formats.protobuf.model import ProtoDocument, ProtoField

_WIDER_TYPES: Final = {
    "bool": frozenset(("int32", "uint32", "int64", "uint64")),
    "int32": frozenset(("int64",)),
    "uint32": frozenset(("int64", "uint64")),
    "sint32": frozenset(("sint64",)),
    "string": frozenset(("bytes",)),
    # The bytes then contain the encoded message.
    "message": frozenset(("bytes",)),
}
_SIGNED_TYPES: Final = frozenset(("int32", "int64"))
_UNSIGNED_TYPES: Final = frozenset(("uint32", "uint64"))
_NAMED_KINDS: Final = frozenset(("message", "group", "enum", "opaque"))
#: Kinds whose repeated fields are never packed, so a reader of a single value takes the last of many.
_UNPACKABLE_KINDS: Final = frozenset(("string", "bytes", "message"))


def is_wider(older: ProtoField, newer: ProtoField, before: ProtoDocument, after: ProtoDocument) -> bool:
    """Whether the newer type has every value of the older one, with the same encoding."""
    if older.kind in _NAMED_KINDS and newer.kind in _NAMED_KINDS:
        is_same_kind = older.kind == newer.kind or "opaque" in (older.kind, newer.kind)
        return is_same_kind and is_same_type(older.type, newer.type, before, after)
    if older.kind == "enum":
        enum = before.enums.get(older.type)
        has_negative_values = enum is None or min(enum.values) < 0
        return newer.kind in _SIGNED_TYPES or (newer.kind in _UNSIGNED_TYPES and not has_negative_values)
    if newer.kind == "enum":
        # An open enum holds every number; a closed one moves unknown numbers to the unknown fields.
        enum = after.enums.get(newer.type)
        return older.kind == "int32" and enum is not None and not enum.is_closed
    return older.kind == newer.kind or newer.kind in _WIDER_TYPES.get(older.kind, ())


def is_same_type(first: str, other: str, before: ProtoDocument, after: ProtoDocument) -> bool:
    """Whether two names mean the same type.

    Types from unavailable imports are known by the name in the document, which may lack enclosing packages. So one name
    may be a suffix of the other.
    """
    if first == other:
        return True
    if first in before.opaque or other in after.opaque:
        return first.endswith(f".{other}") or other.endswith(f".{first}")
    return False


def may_become_repeated(older: ProtoField, newer: ProtoField) -> bool:
    """Whether a single value may become repeated: both sides can read each other, except for packed numbers."""
    return older.repeated == newer.repeated or (
        newer.repeated
        and (newer.kind in _UNPACKABLE_KINDS or (newer.kind not in ("opaque", "group") and not newer.packed))
    )


def reads_as_zero(field: ProtoField, parsed: ProtoDocument) -> bool:
    """Whether a reader gets zero, false or empty for a field that was not written."""
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

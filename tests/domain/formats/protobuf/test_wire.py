"""Every change of a field's type is allowed exactly if no value is lost, checked with Google's library."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from annals.domain.formats import protobuf

#: Values of each type that another type would have to hold: its bounds, and values that few other types can hold.
VALUES: dict[str, tuple[Any, ...]] = {
    "bool": (True,),
    "int32": (-(2**31), 2**31 - 1, 5),
    "sint32": (-(2**31), 2**31 - 1, 5),
    "sfixed32": (-(2**31), 2**31 - 1, 5),
    "int64": (-(2**63), 2**63 - 1, 5),
    "sint64": (-(2**63), 2**63 - 1, 5),
    "sfixed64": (-(2**63), 2**63 - 1, 5),
    "uint32": (2**32 - 1, 5),
    "fixed32": (2**32 - 1, 5),
    "uint64": (2**64 - 1, 5),
    "fixed64": (2**64 - 1, 5),
    "float": (1.5, float("inf")),
    "double": (1.5, 1e300),
    "string": ("ä",),
    "bytes": (b"\xff", b"\x08"),
    "E": (-1, 2),
    "F": (3,),
    "N": (-1,),
    "O": (b"\xff",),
}
#: Refused although no value is lost: names of types are fixed (SC-36), and the documentation does not name the pair.
STRICTER = {("bool", "E"), ("bool", "F"), ("E", "F"), ("F", "E"), ("N", "O"), ("O", "N")}


@pytest.mark.parametrize("before", VALUES)
def test_a_type_may_become_what_holds_all_its_values(before: str) -> None:
    for label, after in product(("", "repeated "), VALUES):
        older, newer = document(before, label), document(after, label)
        allowed = not protobuf.incompatibilities(newer, older, "reader")
        assert allowed == (not protobuf.incompatibilities(older, newer, "writer")), (before, after)
        lossless = all(keeps(older, newer, value) for value in VALUES[before])
        assert allowed == (lossless and (before, after) not in STRICTER), (label, before, after)


def document(type: str, label: str) -> protobuf.ProtoDocument:
    return protobuf.parse(
        'syntax = "proto3"; enum E { E_ZERO = 0; E_MINUS = -1; E_TWO = 2; } enum F { F_ZERO = 0; F_THREE = 3; } '
        f"message N {{ int32 x = 1; }} message O {{ bytes x = 1; }} message M {{ {label}{type} field = 1; }}".encode(),
        "protobuf/3",
    )


def message(document: protobuf.ProtoDocument) -> Any:
    pool = DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(document.descriptor))
    return GetMessageClass(pool.FindMessageTypeByName("M"))()


def keeps(older: protobuf.ProtoDocument, newer: protobuf.ProtoDocument, value: Any) -> bool:
    """Returns whether a reader of the newer document finds the value that a writer of the older one wrote."""
    made, read = message(older), message(newer)
    field = made.DESCRIPTOR.fields[0]
    if field.message_type:
        (made.field.add() if field.is_repeated else made.field).x = value
    elif field.is_repeated:
        made.field.append(value)
    else:
        made.field = value
    try:
        read.MergeFromString(made.SerializeToString())
    except DecodeError:
        return False
    was, now = (one.field[:1] if field.is_repeated else [one.field] for one in (made, read))
    return [plain(one) for one in was] == [plain(one) for one in now]


def plain(value: Any) -> Any:
    """Returns the value in a form that is the same for all types that can hold it; a message as its encoding."""
    if isinstance(value, str):
        return value.encode()
    return value.SerializeToString() if hasattr(value, "DESCRIPTOR") else value

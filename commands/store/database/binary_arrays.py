"""Columns of rows as PostgreSQL's binary arrays, and statements that take them.

psycopg can write arrays too. It looks at every value to find a type, which for a few rows takes longer than the server
needs to insert them, and it parses a statement with so many parameters again each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakSet

from sqlalchemy import Table

if TYPE_CHECKING:
    import psycopg  # takes long, and a SQLite store does not need it

#: Where statements take an array.
PLACEHOLDER: Final = "%b"
#: Number of dimensions, whether there are nulls, type of the elements, number of elements, index of the first.
_HEAD: Final = Struct("!iiIii").pack
_LENGTH: Final = Struct("!i").pack
_LENGTH_AND_INTEGER: Final = Struct("!iq").pack
_LENGTH_AND_DOUBLE: Final = Struct("!id").pack
_NULL: Final = _LENGTH(-1)
_BOOLEANS: Final = {None: _NULL, False: _LENGTH(1) + b"\0", True: _LENGTH(1) + b"\1"}


class BinaryArray(bytes):
    """An array as PostgreSQL receives it. There is a class for each type of elements, because psycopg needs one."""

    __slots__ = ()


class ArrayType(NamedTuple):
    """A type of elements. element_oid, array_oid: of the type and of its arrays in PostgreSQL."""

    element_oid: int
    array_oid: int
    array_class: type[BinaryArray]
    encode: Callable[[Iterable[Any]], list[bytes]]


def _encode_texts(values: Iterable[str | None]) -> list[bytes]:
    return _encode_bytes([None if value is None else value.encode() for value in values])


def _encode_bytes(values: Iterable[bytes | None]) -> list[bytes]:
    return [_NULL if value is None else _LENGTH(len(value)) + value for value in values]


def _encode_integers(values: Iterable[int | None]) -> list[bytes]:
    return [_NULL if value is None else _LENGTH_AND_INTEGER(8, value) for value in values]


def _encode_doubles(values: Iterable[float | None]) -> list[bytes]:
    return [_NULL if value is None else _LENGTH_AND_DOUBLE(8, value) for value in values]


def _encode_booleans(values: Iterable[bool | None]) -> list[bytes]:
    return [_BOOLEANS[value] for value in values]


class _Texts(BinaryArray):
    __slots__ = ()


class _Bytes(BinaryArray):
    __slots__ = ()


class _Integers(BinaryArray):
    __slots__ = ()


class _Doubles(BinaryArray):
    __slots__ = ()


class _Booleans(BinaryArray):
    __slots__ = ()


#: The types of elements, by the Python type of their values.
ARRAY_TYPES: Final[dict[type, ArrayType]] = {
    str: ArrayType(25, 1009, _Texts, _encode_texts),
    bytes: ArrayType(17, 1001, _Bytes, _encode_bytes),
    int: ArrayType(20, 1016, _Integers, _encode_integers),
    float: ArrayType(701, 1022, _Doubles, _encode_doubles),
    bool: ArrayType(16, 1000, _Booleans, _encode_booleans),
}


@lru_cache(maxsize=256)
def column_types(table: Table) -> tuple[type, ...]:
    """The Python types of a table's columns, for `encode_columns`."""
    return tuple(column.type.python_type for column in table.columns)


def encode_columns(rows: Sequence[Sequence[Any]], types: Sequence[type]) -> list[BinaryArray]:
    """One array for each column of some rows. types: the Python types of the columns' values, which may be None."""
    return [
        _encode_column(values, ARRAY_TYPES[type]) for values, type in zip(zip(*rows, strict=True), types, strict=True)
    ]


def encode_list(values: Sequence[str | int]) -> BinaryArray | list[Any]:
    """Texts or integers as an array for a connection with `register_dumpers`; an empty list has no type of elements."""
    return _encode_column(values, ARRAY_TYPES[int if isinstance(values[0], int) else str]) if values else []


def execute(connection: psycopg.Connection[Any], statement: str, arrays: Sequence[BinaryArray]) -> None:
    """Runs a prepared statement with an array at each `PLACEHOLDER`."""
    from psycopg import RawCursor

    register_dumpers(connection)
    RawCursor(connection).execute(_numbered(statement), arrays, prepare=True)


def _encode_column(values: Sequence[Any], array_type: ArrayType) -> BinaryArray:
    head = _HEAD(1, None in values, array_type.element_oid, len(values), 1)
    return array_type.array_class(b"".join((head, *array_type.encode(values))))


#: Connections that can send arrays.
_PREPARED_CONNECTIONS: Final[WeakSet[Any]] = WeakSet()


def register_dumpers(connection: psycopg.Connection[Any]) -> None:
    """Lets a connection send arrays."""
    if connection not in _PREPARED_CONNECTIONS:
        for array_class, dumper in _dumpers():
            connection.adapters.register_dumper(array_class, dumper)
        _PREPARED_CONNECTIONS.add(connection)


@lru_cache(maxsize=1)
def _dumpers() -> list[tuple[type[BinaryArray], Any]]:
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    class ArrayDumper(Dumper):
        format = Format.BINARY

        def dump(self, obj: BinaryArray) -> bytes:
            return obj

    return [
        (array_type.array_class, type("ArrayDumper", (ArrayDumper,), {"oid": array_type.array_oid}))
        for array_type in ARRAY_TYPES.values()
    ]


@lru_cache(maxsize=256)
def _numbered(statement: str) -> bytes:
    """The statement with the placeholders of the server, `$1` and so on."""
    first, *others = statement.split(PLACEHOLDER)
    return (first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))).encode()

"""Checks that the default of a field is a value of its type.

Spec: Avro, "Records", the table of field default values. Up to 1.11 the default of a union must match its first branch,
since 1.12 any branch. JSON has no numbers for `NaN` and the infinities; Avro's Java library prints such a default of a
float or a double as a string, and reads it where the field itself has this type, not within a union or an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from annals.domain.formats.avro.schema import AvroType, RecordField, invalid_document, shorten_name
from annals.domain.values.json_pointer import join_pointer

_FIRST_BRANCH_HINT: Final = ", which is the first of its union"
_NON_FINITE_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")


class _DefaultError(NamedTuple):
    text: str
    pointer: str
    value: Any


class DefaultChecker:
    """Checks values against the types of one schema.

    Cost: linear in the value, also for recursive types; inside of a union, once for each of its branches.
    """

    def __init__(self, types: Sequence[AvroType], any_branch: bool) -> None:
        self._types = types
        self._any_branch = any_branch
        self._records: dict[int, tuple[dict[str, RecordField], list[str]]] = {}
        self._symbols: dict[int, frozenset[str]] = {}
        self._cache: dict[tuple[int, int], _DefaultError | None] = {}

    def check(self, index: int, value: Any, pointer: str) -> None:
        """Raises: InvalidDocument where the value at a pointer does not have the type."""
        if self._types[index].kind in ("float", "double") and value in _NON_FINITE_NUMBERS:
            return
        if error := self._find_error(index, value, pointer):
            raise invalid_document(error.text, error.pointer, error.value)

    def branch_of(self, union: int, value: Any) -> int:
        """The type of the union branch that accepts a value; the value must be valid for the union."""
        branches = self._types[union].parts
        if not self._any_branch:
            return branches[0].type
        return next(branch.type for branch in branches if self._find_error(branch.type, value, "") is None)

    def _find_error(self, index: int, value: Any, pointer: str) -> _DefaultError | None:
        """The error of a value; None if it is valid. Caches objects and arrays, which several union branches check."""
        if not isinstance(value, (dict, list)):
            return self._check_value(index, value, pointer)
        known = (index, id(value))
        if known not in self._cache:
            self._cache[known] = self._check_value(index, value, pointer)
        return self._cache[known]

    def _check_value(self, index: int, value: Any, pointer: str) -> _DefaultError | None:
        avro_type = self._types[index]
        if (is_value := _PRIMITIVE_TESTS.get(avro_type.kind)) is not None:
            return None if is_value(value) else _type_error(avro_type, pointer, value)
        match avro_type.kind, value:
            case "union", _:
                return self._union(avro_type, value, pointer)
            case "record", dict():
                return self._record(index, value, pointer)
            case "array", list():
                pointed_items = ((item, f"{pointer}/{at}") for at, item in enumerate(value))
            case "map", dict():
                pointed_items = ((item, join_pointer(pointer, key)) for key, item in value.items())
            case "enum", str() if self._is_symbol(index, value):
                return None
            case "fixed", _ if _is_binary(value) and len(value) == avro_type.size:
                return None
            case _:
                return _type_error(avro_type, pointer, value)
        flaws = (self._find_error(avro_type.parts[0].type, item, item_pointer) for item, item_pointer in pointed_items)
        return next((error for error in flaws if error), None)

    def _union(self, union: AvroType, value: Any, pointer: str) -> _DefaultError | None:
        branches = union.parts if self._any_branch else union.parts[:1]
        errors = []
        for branch in branches:
            error = self._find_error(branch.type, value, pointer)
            if error is None:
                return None
            errors.append(error)
        if len(errors) == 1:
            return errors[0]._replace(text=f"{errors[0].text.removesuffix(_FIRST_BRANCH_HINT)}{_FIRST_BRANCH_HINT}")
        return _DefaultError("the default is not a value of any type of its union", pointer, value)

    def _record(self, index: int, value: dict[str, Any], pointer: str) -> _DefaultError | None:
        fields, required = self._fields(index)
        for name in required:
            if name not in value:
                return _DefaultError(
                    f'the default does not have the field "{shorten_name(name)}" of {self._types[index].label}',
                    pointer,
                    value,
                )
        for name, item in value.items():
            if name in fields and (
                error := self._find_error(fields[name].type.type, item, join_pointer(pointer, name))
            ):
                return error
        return None

    def _is_symbol(self, index: int, value: str) -> bool:
        if index not in self._symbols:
            self._symbols[index] = frozenset(self._types[index].symbols)
        return value in self._symbols[index]

    def _fields(self, index: int) -> tuple[dict[str, RecordField], list[str]]:
        """The fields of a record by name, and the names of the fields without a default."""
        if index not in self._records:
            fields = {field.name: field for field in self._types[index].fields}
            self._records[index] = fields, [name for name, field in fields.items() if field.required]
        return self._records[index]


def _type_error(avro_type: AvroType, pointer: str, value: Any) -> _DefaultError:
    return _DefaultError(f"the default is not a value of the type {avro_type.label}", pointer, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    if isinstance(value, Decimal):  # an integer of 19 digits or more, or a number with a fraction or an exponent
        return value.as_tuple().exponent == 0
    return isinstance(value, int) and not isinstance(value, bool)


def _is_binary(value: Any) -> bool:
    """Whether each character of a text represents one byte."""
    return isinstance(value, str) and all(character <= "\xff" for character in value)


#: Checks of values for each primitive type.
_PRIMITIVE_TESTS: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _is_integer(value) and -(2**31) <= value < 2**31,
    "long": lambda value: _is_integer(value) and -(2**63) <= value < 2**63,
    "float": _is_number,
    "double": _is_number,
    "string": lambda value: isinstance(value, str),
    "bytes": _is_binary,
}

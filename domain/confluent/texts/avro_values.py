"""The values in normalized Avro texts: members of objects sorted, numbers in one form.

Confluent's registry reads a default as a value of its type and prints that: 1 as 1.0 for a double. Rule CSR-416.
"""

from __future__ import annotations

from ctypes import c_float
from decimal import Decimal
from math import isfinite
from typing import Any

from annals.domain.formats.avro.defaults import DefaultChecker
from annals.domain.formats.avro.schema import AvroSchema


def normal_json(value: Any) -> Any:
    """A value whose type is not known. No number loses a digit."""
    if isinstance(value, dict):
        return {name: normal_json(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [normal_json(item) for item in value]
    return _shorter_number(value) if isinstance(value, Decimal) else value


class DefaultNormalizer:
    """Normalizes the defaults of a schema, which have to be valid."""

    def __init__(self, schema: AvroSchema) -> None:
        self._types = schema.types
        self._checker = DefaultChecker(schema.types, any_branch=True)
        self._fields = {
            record.name: {field.name: field.type.type for field in record.fields}
            for record in schema.types
            if record.kind == "record"
        }

    def normal_default(self, record: str, field: str, default: Any) -> Any:
        """The default of a field. record: its full name."""
        return self._value(self._fields[record][field], default)

    def _value(self, index: int, value: Any) -> Any:
        avro_type = self._types[index]
        match avro_type.kind, value:
            case "union", _:
                return self._value(self._checker.branch_of(index, value), value)
            case "float" | "double" as kind, int() | float() | Decimal():
                return _floating_point(kind, value)
            case "array", list():
                return [self._value(avro_type.parts[0].type, item) for item in value]
            case "map", dict():
                return {name: self._value(avro_type.parts[0].type, value[name]) for name in sorted(value)}
            case "record", dict():
                fields = self._fields[avro_type.name]
                return {
                    name: self._value(fields[name], value[name]) if name in fields else normal_json(value[name])
                    for name in sorted(value)
                }
        return normal_json(value)


def _shorter_number(number: Decimal) -> int | float | Decimal:
    """The number as int or float if it stays equal."""
    if number.as_tuple().exponent == 0:
        return int(number) if abs(number) < 2**63 else number
    double = float(number)
    return double if Decimal(repr(double)) == number else number


def _floating_point(kind: str, number: float | Decimal) -> float | Decimal:
    """The number as a value of `float` or `double`, in the fewest digits; as it is, if it is out of their range."""
    double = float(normal_json(number))
    value = c_float(double).value if kind == "float" else double
    if not isfinite(value):
        return number
    if kind == "double":
        return value
    shorter = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next(candidate for candidate in shorter if c_float(candidate).value == value)

"""The scalar data types: the allowed JSON values, and their stored form.

Values are stored as sent, except for timestamps, which become UTC, and integers written as `1.0`, which become `1`.
Spec: core 1.0-rc4, "Data Types".
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Final

from annals.domain.model.validation import rfc3339, targets, uris
from annals.domain.model.validation.targets import Types
from annals.domain.model.validation.value_errors import InvalidValue
from annals.domain.values import timestamps
from annals.domain.values.json_text import InvalidJson, loads, number_text

#: Returns the value to store. Raises: InvalidValue.
ValueCheck = Callable[[Any], Any]
#: The steps from a value to a nested one, the last step first.
ValueTrail = tuple["ValueTrail", str | int] | None

#: The types of numbers from JSON text; a bool is an int to Python only.
_NUMBERS: Final = (int, float, Decimal)
#: The maximum number of digits of an int from JSON text; longer integers are Decimals.
_INT_DIGITS: Final = 18
#: The maximum size in bytes of a scalar attribute's name and value together, so that they fit in a header (ENT-13).
MAX_HEADER_BYTES: Final = 4096
#: Types with short values, and their maximum length; Decimals are not included, because they can have any length.
_SHORT_TYPES: Final = frozenset((bool, float, int, type(None)))
_MAX_SCALAR_LENGTH: Final = 32


def scalar_check(type_name: str, types: Types, target: str | None = None) -> ValueCheck:
    """The check of a scalar data type. target: as the definition has it."""
    if type_name in _NUMBER_CHECKS:
        return _NUMBER_CHECKS[type_name]
    if type_name == "boolean":
        return _check_boolean
    return _typed_text_check(type_name, _parser(type_name, types, target))


def enum_check(type_name: str, values: Sequence[Any], ignore_case: bool = False) -> ValueCheck:
    """The check of a strict `enum` of a scalar data type."""

    def key(value: Any) -> Any:
        return fold_value(value) if ignore_case else equality_key(type_name, value)

    allowed = {key(value) for value in values}
    allowed_text = ", ".join(string_form(value) for value in values)

    def check(value: Any) -> Any:
        if key(value) not in allowed:
            raise InvalidValue(f"{string_form(value)!r} is not one of: {allowed_text}")
        return value

    return check


def fits_in_header(name: str, text: str) -> bool:
    """Whether a scalar attribute is small enough for an HTTP header (ENT-13)."""
    return len(name.encode()) + len(text.encode()) <= MAX_HEADER_BYTES


def size_check(name: str) -> ValueCheck:
    """The check that an attribute fits in a header (ENT-13)."""
    max_bytes = MAX_HEADER_BYTES - len(name.encode())
    # No character takes more than four bytes, so most values are measured without encoding.
    max_characters = max_bytes // 4

    def check(value: Any) -> Any:
        text = value if type(value) is str else number_text(value) if type(value) is Decimal else string_form(value)
        if len(text) > max_characters and len(text.encode()) > max_bytes:
            raise InvalidValue(f"its name and value take more than {MAX_HEADER_BYTES} bytes")
        return value

    return check


def nested_size_check(name: str) -> ValueCheck:
    """The check that each scalar at any depth of a value fits in a header with the nearest name above it."""

    def check(value: Any) -> Any:
        pending: list[tuple[str, ValueTrail, Any]] = [(name, None, value)]
        while pending:  # no recursion, because clients choose the depth
            nearest_name, trail, current = pending.pop()
            if isinstance(current, dict):
                pending += [
                    (key, (trail, key), member) for key, member in current.items() if not _is_short(key, member)
                ]
            elif isinstance(current, list):
                # All numbers of an array are checked in one step: it may have millions of them.
                if not (_is_short(nearest_name, 0) and _SHORT_TYPES.issuperset(map(type, current))):
                    pending += [
                        (nearest_name, (trail, index), member)
                        for index, member in enumerate(current)
                        if not _is_short(nearest_name, member)
                    ]
            elif current is not None:
                _check_size_at(nearest_name, trail, current)
        return value

    return check


def _is_short(name: str, value: Any) -> bool:
    """Whether a value is a scalar that fits even if each of its characters takes four bytes, the maximum."""
    value_type = type(value)
    length = len(value) if value_type is str else _MAX_SCALAR_LENGTH if value_type in _SHORT_TYPES else MAX_HEADER_BYTES
    return 4 * (len(name) + length) <= MAX_HEADER_BYTES


def _check_size_at(name: str, trail: ValueTrail, value: Any) -> None:
    try:
        size_check(name)(value)
    except InvalidValue as invalid_value:
        while trail is not None:
            trail, step = trail
            invalid_value = invalid_value.in_container(step)
        raise invalid_value from None


def text_check(name: str) -> ValueCheck:
    """The check of a string attribute, in one step because most attributes are strings."""
    full_check = chained_check([_check_plain_string, size_check(name)])
    max_characters = (MAX_HEADER_BYTES - len(name.encode())) // 4

    def check(value: Any) -> Any:
        return value if type(value) is str and len(value) <= max_characters else full_check(value)

    return check


def chained_check(checks: Sequence[ValueCheck]) -> ValueCheck:
    """The checks in order, each on the result of the previous one."""
    if len(checks) == 1:
        return checks[0]
    first, *other_checks = checks

    def check(value: Any) -> Any:
        value = first(value)
        for next_check in other_checks:
            value = next_check(value)
        return value

    return check


def string_form(value: Any) -> str:
    """A scalar as a string, for `ifvalues` (MOD-24), errors and headers."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if _is_exact_integer(value):
            return str(int(value))
        case Decimal():
            return _canonical_number(value)
        case float():
            return number_text(value)
    return type(value).__name__


def _canonical_number(number: Decimal) -> str:
    """The same text for equal numbers: without exponent where plain digits fit, without trailing zeros."""
    if abs(number.adjusted()) > MAX_HEADER_BYTES:
        return number_text(number)
    fixed_point = format(number, "f")
    return fixed_point.rstrip("0").rstrip(".") if "." in fixed_point else fixed_point


def equality_key(type_name: str, value: Any) -> Any:
    """An equal, hashable key for two values of a scalar data type that mean the same.

    Timestamps are equal if they name the same instant, numbers if they have the same value, also with another sign of
    zero. A value that is not of the type is its own key.
    """
    if type_name in _NUMBER_CHECKS and type(value) in _NUMBERS:
        return Decimal, Decimal(number_text(value))
    if type_name == "timestamp" and type(value) is str:
        with suppress(ValueError, OverflowError):
            return timestamps.instant_key(rfc3339.to_utc(value))
    return value


def switch_key(type_name: str, value: Any) -> Hashable:
    """What `ifvalues` compares of a value, and of a key, which is the text of a value; None for what is no scalar."""
    if type_name in _NUMBER_CHECKS and type(value) is str:
        value = _parse_number(value)
    if not isinstance(value, (str, bool, *_NUMBERS)):
        return None
    key = equality_key(type_name, value)
    return key if isinstance(key, tuple) else fold_value(key)


def _parse_number(text: str) -> Any:
    """The number that a text is in JSON; else the text."""
    try:
        value = loads(text.encode(errors="replace"))
    except InvalidJson:
        return text
    return value if type(value) in _NUMBERS else text


def fold_value(value: Any) -> str:
    """An equal text for two values that differ only in case."""
    return string_form(value).casefold()


def _check_boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise InvalidValue(f"it is not a boolean but {_describe_value(value)}")


def _check_decimal(value: Any) -> Any:
    # A bool is an int to Python, but not in xRegistry.
    if type(value) in (int, float, Decimal):
        return value
    raise InvalidValue(f"it is not a number but {_describe_value(value)}")


def _check_integer(value: Any) -> Any:
    if type(value) is int:
        return value
    number = _check_decimal(value)
    if _is_exact_integer(number):
        return int(number)
    if number == Decimal(number).to_integral_value():
        return _plain_digits(Decimal(number))
    raise InvalidValue(f"{string_form(value)} is not an integer")


def _plain_digits(number: Decimal) -> Any:
    """An integer without exponent or fraction, as readers of integers expect; unchanged if it is too long."""
    if number.adjusted() >= MAX_HEADER_BYTES:
        return number
    return int(number) if number.adjusted() < _INT_DIGITS else Decimal(int(number))


def _is_exact_integer(number: float | Decimal) -> bool:
    """Whether a float is an integer that it represents exactly."""
    return isinstance(number, float) and number.is_integer() and abs(number) < 2**53


def _check_uinteger(value: Any) -> Any:
    number = _check_integer(value)
    if number < 0:
        raise InvalidValue(f"{string_form(number)} is negative")
    return number


def _any_string(value: str) -> str:
    return value


def _url_parser(parse: Callable[[str], str]) -> Callable[[str], str]:
    return lambda value: uris.locator(parse(value))


_NUMBER_CHECKS: Final[dict[str, ValueCheck]] = {
    "decimal": _check_decimal,
    "integer": _check_integer,
    "uinteger": _check_uinteger,
}
#: Parsers of the data types that are strings in JSON and need no model.
_STRING_PARSERS: Final[dict[str, Callable[[str], str]]] = {
    "string": _any_string,
    "timestamp": rfc3339.to_utc,
    "uri": uris.reference,
    "uriabsolute": uris.absolute,
    "urirelative": uris.relative,
    "url": _url_parser(uris.reference),
    "urlabsolute": _url_parser(uris.absolute),
    "urlrelative": _url_parser(uris.relative),
    "uritemplate": uris.template,
}
_XID_CHECKS: Final = {"xid": targets.check_xid, "xidtype": targets.check_xidtype}

#: The Python types of values that need no check beyond their type, by data type.
PLAIN: Final[dict[str, frozenset[type]]] = {
    "boolean": frozenset((bool,)),
    "decimal": frozenset((int, float, Decimal)),
    "integer": frozenset((int,)),
    "string": frozenset((str,)),
}
#: Names of the scalar data types.
SCALARS: Final = frozenset({"boolean", *_NUMBER_CHECKS, *_STRING_PARSERS, *_XID_CHECKS})
#: Names of the other data types.
COMPLEX: Final = frozenset({"any", "array", "map", "object"})
#: Data types that may have a `target`.
TARGETABLE: Final = frozenset({"uri", "url", "xid"})


def _parser(type_name: str, types: Types, target: str | None) -> Callable[[str], str]:
    if type_name in _XID_CHECKS:
        return targets.target_check(target, types) if target else lambda value: _XID_CHECKS[type_name](value, types)
    parse = _STRING_PARSERS[type_name]
    if target is None:
        return parse
    check_target = targets.target_check(target, types)
    return lambda value: check_target(value) if value.startswith("/") else parse(value)


def _typed_text_check(type_name: str, parse: Callable[[str], str]) -> ValueCheck:
    def check(value: Any) -> str:
        if type(value) is not str:
            raise InvalidValue(f"it is not a {type_name} but {_describe_value(value)}")
        try:
            return parse(value)
        except (ValueError, OverflowError) as error:
            raise InvalidValue(f"{value!r} is not a {type_name}: {error}") from None

    return check if type_name != "string" else _check_plain_string


def _check_plain_string(value: Any) -> str:
    if type(value) is not str:
        raise InvalidValue(f"it is not a string but {_describe_value(value)}")
    return value


def _describe_value(value: Any) -> str:
    """A description of a JSON value for people."""
    match value:
        case bool():
            return f"the boolean {string_form(value)}"
        case str():
            return "a string"
        case int() | float() | Decimal():
            return "a number"
        case list():
            return "an array"
        case None:
            return "null"
    return "an object"

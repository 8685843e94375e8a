"""Reads and writes JSON text exactly: duplicate members are refused and no number loses a digit.

`loads` returns int and float if they are written as the same text again, otherwise Decimal. So a number is returned to
clients as it was sent (SER-13). Integers beyond 64 bits are Decimals with exponent 0.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import orjson

Json = Any  # None | bool | int | float | Decimal | str | list | dict; a recursive alias costs more than it finds


class InvalidJson(ValueError):
    """The text is not JSON, or JSON that this registry does not accept; the message says why."""


def loads(text: bytes | str) -> Json:
    """The value of a JSON text.

    Raises: InvalidJson for bad syntax, bad UTF-8, lone surrogates, duplicate members, NaN, Infinity and deep nesting.
    """
    if isinstance(text, bytes) and (read := _loads_canonical(text)):
        return read[0]
    try:
        source = text.decode("utf-8") if isinstance(text, bytes) else text
        value = _DECODER.decode(source)
        # Writing the value once finds what could not be written later: half a surrogate pair, or nesting beyond the
        # writer's limit. The limit is checked eight levels early, because an entity's after-image wraps what a client
        # sent.
        orjson.dumps([[[[[[[[value]]]]]]]], default=_encode_decimal)
    except UnicodeDecodeError as error:
        raise InvalidJson(f"the text is not valid UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise InvalidJson("the nesting is too deep") from None
    except json.JSONDecodeError as error:
        raise InvalidJson(f"{error.msg.removesuffix(' at')} at line {error.lineno} column {error.colno}") from None
    except orjson.JSONEncodeError as error:
        is_too_deep = "ecursion" in str(error)
        raise InvalidJson(
            "the nesting is too deep" if is_too_deep else "a string contains half of a surrogate pair"
        ) from None
    return value


def is_json(text: bytes) -> bool:
    """Whether `loads` accepts a text."""
    try:
        loads(text)
    except InvalidJson:
        return False
    return True


def loads_trusted(text: bytes | str) -> Json:
    """The value of a text that `dumps` wrote: the result of `loads`, in a third of its time.

    If the fast reader rounds or refuses a value, its result differs from the text, and the exact reader reads the text.
    Raises: InvalidJson for a damaged text.
    """
    try:
        value = orjson.loads(text)
        if orjson.dumps(value) == (text.encode() if isinstance(text, str) else text):
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, UnicodeEncodeError):
        pass  # the exact reader says what is wrong
    return loads(text)


def _loads_canonical(text: bytes) -> tuple[Json] | None:
    """The value of a text that `dumps` would write the same way, as most programs do; None for another text.

    It takes a quarter of the time. A text that is written the same again has no duplicate members, and its numbers are
    exact. Long integers are left to the exact reader, which makes Decimals of them.
    """
    try:
        value = orjson.loads(text)
        written = orjson.dumps([[[[[[[[value]]]]]]]], option=orjson.OPT_STRICT_INTEGER)
        return (value,) if written == b"[[[[[[[[%b]]]]]]]]" % text else None
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None


def dumps(value: Json) -> bytes:
    """Compact UTF-8 JSON; member order is kept."""
    return orjson.dumps(value, default=_encode_decimal)


def unquoted(value: Json) -> str:
    """The JSON text of a value for people: a string as it is, without quotes."""
    return value if isinstance(value, str) else dumps(value).decode()


def dumps_indented(value: Json) -> str:
    """JSON for people, in lines of one member each; its numbers are those of `dumps`."""
    return orjson.dumps(value, default=_encode_decimal, option=orjson.OPT_INDENT_2).decode()


def differing_names(before: Mapping[str, Json], after: Mapping[str, Json]) -> set[str]:
    """The names whose values differ as JSON text."""
    return {name for name in before.keys() | after.keys() if dumps(before.get(name)) != dumps(after.get(name))}


def is_equal(first: Json, other: Json) -> bool:
    """Whether two values are equal, whatever the order of members; unlike in Python, `true` is not 1 at any depth."""
    if first is other:
        return True
    if isinstance(first, dict):
        return (
            isinstance(other, dict)
            and first.keys() == other.keys()
            and all(is_equal(value, other[name]) for name, value in first.items())
        )
    if isinstance(first, list):
        return isinstance(other, list) and len(first) == len(other) and all(map(is_equal, first, other))
    return first == other and isinstance(first, bool) == isinstance(other, bool)


def number_text(number: float | Decimal) -> str:
    """The canonical JSON text of a number."""
    return dumps(number).decode()


def _encode_decimal(value: object) -> orjson.Fragment:
    if isinstance(value, Decimal):
        return orjson.Fragment(str(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


def _parse_float(text: str) -> float | Decimal:
    value = float(text)
    # Compared with our own writer, not repr, so that a written number is always read and written the same.
    return value if orjson.dumps(value) == text.encode() else _parse_decimal(text)


def _parse_decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise InvalidJson(f"the number {text[:40]}... is out of range") from None


def _parse_int(text: str) -> int | Decimal:
    # No int is minus zero, and none beyond 64 bits can be written.
    return int(text) if len(text) < 19 and text != "-0" else Decimal(text)


def _unique_members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        duplicate = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise InvalidJson(f'the member "{duplicate}" appears twice in one object')
    return members


def _refuse_constant(text: str) -> Json:
    raise InvalidJson(f"{text} is not a JSON number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_unique_members, parse_float=_parse_float, parse_int=_parse_int, parse_constant=_refuse_constant
)

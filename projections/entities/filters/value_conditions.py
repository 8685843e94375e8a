"""The conditions of a filter's expression on the values in the attribute index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from annals.domain.filters import FilterExpression, FilterValue, Operator
from annals.projections.entities.filters.sql import ALWAYS, NEVER, SqlFragment, and_, or_
from annals.projections.entities.index_values import (
    BOOLEAN,
    CUT,
    FALSE_VALUE,
    KEY_LIMIT,
    NUMBER,
    TEXT,
    TIMESTAMP_END,
    TRUE_VALUE,
    is_cut,
    number_value,
    sorted_text_value,
)

#: The comparison operators in SQL.
COMPARISONS: Final = {
    Operator.EQUAL: "=",
    Operator.LESS: "<",
    Operator.AT_MOST: "<=",
    Operator.MORE: ">",
    Operator.AT_LEAST: ">=",
}


#: The characters of folded timestamps and of their values in the index, and the length of both up to the seconds.
_TIMESTAMP_CHARACTERS: Final = frozenset("0123456789-:t.z!")
_EARLY_SEPARATORS: Final = frozenset("-:t")
_END_CHARACTERS: Final = frozenset(".z!")
_SECONDS_LENGTH: Final = len("2030-12-19t06:00:00")


class DrivingRank(IntEnum):
    """What an expression asks for, by how few entities it is likely to find: the lowest of a conjunction drives it."""

    SINGLE_VALUE = 0
    PREFIX = 1
    COMPARISON = 2
    PRESENCE = 3
    PATTERN = 4
    XID = 5
    NEGATION = 6


class ValueConditions(NamedTuple):
    """Conditions on the column `a.value` that together meet an expression, ignoring its negation.

    exact: single values. ranges: conditions on ranges of values. doubtful: a condition on values that do not decide.
    """

    exact: tuple[bytes, ...] = ()
    ranges: tuple[SqlFragment, ...] = ()
    doubtful: SqlFragment | None = None
    rank: DrivingRank = DrivingRank.SINGLE_VALUE

    @property
    def possible(self) -> SqlFragment:
        """A condition on all values of which any may meet the expression."""
        doubtful = (self.doubtful,) if self.doubtful else ()
        return or_((*map(_is, self.exact), *self.ranges, *doubtful, NEVER))


def value_conditions(expression: FilterExpression, like_condition: str) -> ValueConditions:
    """The conditions of an expression. like_condition: see `Database`."""
    operator, filter_value = expression.operator.positive, expression.value
    if operator is Operator.PRESENT:
        return ValueConditions(ranges=(ALWAYS,), rank=DrivingRank.PRESENCE)
    if filter_value.has_wildcards:
        return _pattern_conditions(filter_value.pieces, like_condition)
    values = _values(filter_value)
    cut_values = [value for value in values if is_cut(value)]
    doubtful = or_(_is(value) for value in cut_values) if cut_values else None
    if operator is Operator.EQUAL:
        return ValueConditions(tuple(value for value in values if not is_cut(value)), doubtful=doubtful)
    return ValueConditions(
        ranges=tuple(_comparison(operator, value) for value in values), doubtful=doubtful, rank=DrivingRank.COMPARISON
    )


def like_pattern(pieces: Sequence[str]) -> str:
    """The pattern of LIKE for texts with anything between some pieces; the escape character is a backslash."""
    return "%".join(re.sub(r"([%_\\])", r"\\\1", piece) for piece in pieces)


def _values(filter_value: FilterValue) -> list[bytes]:
    """The values that are equal to that of a filter, of each kind."""
    values = []
    if filter_value.text is not None:
        values.append(sorted_text_value(filter_value.text))
    if filter_value.boolean is not None:
        values.append(TRUE_VALUE if filter_value.boolean else FALSE_VALUE)
    if filter_value.number is not None:
        values.append(number_value(filter_value.number))
    return values


def _is(value: bytes) -> SqlFragment:
    return SqlFragment("a.value = ?", (value,))


def _comparison(operator: Operator, value: bytes) -> SqlFragment:
    """The values of one kind below or above one; of those that are cut, only different ones."""
    comparison = COMPARISONS[operator][0] if is_cut(value) else COMPARISONS[operator]
    kind = value[:1]
    if comparison[0] == "<":
        return SqlFragment(f"a.value >= ? AND a.value {comparison} ?", (kind, value))
    return SqlFragment(f"a.value {comparison} ? AND a.value < ?", (value, _after(kind)))


def _after(kind: bytes) -> bytes:
    return {NUMBER: BOOLEAN, BOOLEAN: TEXT, TEXT: b"\4"}[kind]


def _pattern_conditions(pieces: tuple[str, ...], like_condition: str) -> ValueConditions:
    """The conditions for a pattern: its prefix is a range; the value in the index decides the rest, with exceptions.

    A value that is cut does not decide, nor does one that may be a timestamp if the pattern tells its notations apart.
    """
    prefix, depends_on_notation = pieces[0][:KEY_LIMIT], _depends_on_notation(pieces)
    has_prefix = _has_prefix(prefix)
    if not any(pieces[1:]) and len(pieces[0]) <= KEY_LIMIT and not depends_on_notation:
        return ValueConditions(ranges=(has_prefix,), rank=DrivingRank.PREFIX)
    is_cut_off, may_be_timestamp = _ends_in(CUT), _ends_in(TIMESTAMP_END)
    pattern = TEXT + like_pattern(pieces).encode()
    conditions = [has_prefix, is_cut_off.wrap("NOT ({})"), SqlFragment(like_condition.format("a.value"), (pattern,))]
    doubtful = and_(has_prefix, is_cut_off)
    if depends_on_notation:
        conditions.append(may_be_timestamp.wrap("NOT ({})"))
        doubtful = or_((doubtful, and_(_has_prefix(prefix[:_SECONDS_LENGTH]), may_be_timestamp)))
    rank = DrivingRank.PREFIX if prefix else DrivingRank.PATTERN
    return ValueConditions(ranges=(and_(*conditions),), doubtful=doubtful, rank=rank)


def _depends_on_notation(pieces: tuple[str, ...]) -> bool:
    """Whether a pattern may match a timestamp, but not its value in the index, or the other way round.

    The value has another end than the timestamp, and a fraction without trailing zeros. Up to the seconds they agree.
    """
    first, *middle, last = pieces
    if not _TIMESTAMP_CHARACTERS.issuperset("".join(pieces)):
        return False
    if len(first) > _SECONDS_LENGTH:
        return True
    if last:
        return last[-1] in _END_CHARACTERS
    # A piece with one of the separators before the seconds lies before their end, unless it has one that follows.
    return any(piece and not (_EARLY_SEPARATORS & set(piece) and not _END_CHARACTERS & set(piece)) for piece in middle)


def _has_prefix(prefix: str) -> SqlFragment:
    return SqlFragment("a.value >= ? AND a.value < ?", (TEXT + prefix.encode(), _prefix_end(prefix)))


def _ends_in(byte: bytes) -> SqlFragment:
    return SqlFragment("substr(a.value, length(a.value)) = ?", (byte,))


@lru_cache(maxsize=256)
def _prefix_end(prefix: str) -> bytes:
    """The first value after those of all texts with a prefix."""
    for index in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[index]) + 1
        if code <= 0x10FFFF:
            return TEXT + (prefix[:index] + chr(0xE000 if code == 0xD800 else code)).encode()
    return _after(TEXT)

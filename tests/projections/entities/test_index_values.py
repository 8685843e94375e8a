"""The values of the attribute index: their bytes have the order of the values that they encode."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, AnyStr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.filters.comparison import compare_numbers
from annals.domain.values.json_text import loads
from annals.projections.entities.index_values import KEY_LIMIT, is_cut, scalar_value, text_value
from tests.domain.filters.test_comparison import TEXTS


def test_kinds_have_an_order() -> None:
    # FLAG-51: missing values are lowest, and false is below true
    values: list[Any] = [None, {}, [], -1e999, -1, 0, 1, False, True, "", "a", "true"]
    keys = [*map(scalar_value, values)]
    assert keys == sorted(keys)
    assert keys[0] == keys[1] == keys[2] and len(set(keys)) == len(keys) - 2
    assert scalar_value(-0.0) == scalar_value(0)


@given(TEXTS, TEXTS)
def test_numbers_sort_as_they_compare(one: str, other: str) -> None:
    # FLAG-13, FLAG-51: sort keys have all digits, too
    first, second = (scalar_value(loads(text)) for text in (one, other))
    assert (first > second) - (first < second) == compare_numbers(loads(one), Decimal(other))


@pytest.mark.parametrize(
    "row",
    [
        ["9007199254740991", "9007199254740992", "9007199254740993", "9007199254740994"],
        ["-9007199254740994", "-9007199254740993", "-9007199254740992", "-1.00000000000000000001", "-1"],
        ["0.99999999999999999999", "1", "1.00000000000000000001", "1.000000000000000000011", "1.00000000000000000002"],
        ["-1e999", "-1.5e400", "-1.25e400", "-1e400", "-1e308", "1e308", "1e400", "1.25e400", "1.5e400", "1e999"],
        ["-1e-400", "-1e-999", "0", "1e-999", "1e-400", "5e-324"],
        ["0.1", "0.1000000000000000055511151231257827", "0.1000000000000000055511151231257828"],
    ],
)
def test_adjacent_numbers_differ(row: list[str]) -> None:
    # FLAG-51: also if they round to the same double
    assert sorted(map(loads, reversed(row)), key=scalar_value) == [*map(loads, row)]


# FLAG-13: timestamps compare as instants, whatever their number of fraction digits
def test_timestamps_sort_by_instant() -> None:
    instants = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.05Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:01Z"]
    assert sorted(instants, key=text_value) == instants
    assert text_value("2026-01-01T00:00:00.000Z") == text_value(instants[0])


# FLAG-13: texts have the order of the case-folded texts, NUL included, in the bytes that both databases compare
@given(st.text(max_size=30), st.text(max_size=30))
def test_texts_keep_their_order(one: str, other: str) -> None:
    def sign(left: AnyStr, right: AnyStr) -> int:
        return (left > right) - (left < right)

    keys = text_value(one), text_value(other)
    assert sign(*keys) == sign(one.casefold(), other.casefold())
    assert b"\0" not in keys[0]


def test_what_is_cut_says_so() -> None:
    whole, cut = "x" * (KEY_LIMIT - 1), "x" * KEY_LIMIT
    assert not is_cut(text_value(whole)) and is_cut(text_value(cut))
    assert text_value(cut) == text_value(cut + "y") > text_value(whole)
    number = Decimal(f"1.{'0' * 20}{'1' * 1000}")
    assert is_cut(scalar_value(number)) and len(scalar_value(number)) == 10 + KEY_LIMIT

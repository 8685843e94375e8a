"""Filters and sorts compare numbers by all of their digits."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.filters.comparison import compare_numbers, is_rounded, number_remainder, to_decimal
from annals.domain.values.json_text import loads

DIGITS = st.text("0123456789", min_size=1, max_size=25)
#: Few exponents and few leading digits, so that many pairs share a double.
TEXTS = st.builds(
    lambda sign, whole, fraction, exponent: f"{sign}{whole}.{fraction}{exponent}",
    st.sampled_from(["", "-"]),
    st.sampled_from(["0", "1", "9007199254740992", "9007199254740993"]),
    st.sampled_from(["0", "1", "00000000000000000001", "1000000000000000055511151231257827"]) | DIGITS,
    st.sampled_from(["", "e5", "e-400", "e400"]),
)


@given(TEXTS, TEXTS)
def test_numbers_compare_by_all_digits(one: str, other: str) -> None:
    # FLAG-13: numerically, never through doubles
    first, second = Fraction(one), Fraction(other)
    assert compare_numbers(loads(one), Decimal(other)) == (first > second) - (first < second)
    assert Fraction(to_decimal(loads(one))) == first


def test_keys_have_a_limit() -> None:
    # a number with as many digits as a document has bytes takes no more space in the index than a text
    long = Decimal(f"1.{'0' * 99_999}1")
    assert len(number_remainder(long, 128)) <= 128
    assert len(number_remainder(Decimal(f"1.{'0' * 20}{'1' * 99_999}"), 128)) == 128


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        *((text, False) for text in ("0", "-0.0", "1", "0.1", "1.50", "9007199254740992", "1e300", "5e-324")),
        *((text, True) for text in ("1.00000000000000000001", "9007199254740993", "1e999", "1e-999", "3e-324")),
        ("0.1000000000000000055511151231257827", True),  # the shortest text of this double is 0.1, so it represents 0.1
    ],
)
def test_numbers_that_doubles_cannot_represent(text: str, rounded: bool) -> None:
    assert is_rounded(loads(text)) is rounded

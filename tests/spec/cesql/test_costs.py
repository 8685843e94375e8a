"""The cost of any expression of 8 KiB is bounded (in addition to SUB-423)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from annals.domain.cesql import MAX_BYTES, MAX_PARENTHESES, ContextAttributes, ErrorKind, ParseError, compile_expression
from annals.domain.cesql.evaluation import MAX_STEPS, MAX_TEXT
from annals.domain.cesql.values import parse_integer

#: Maximum number of Python function calls in one evaluation: a few for each step.
CALLS: Final = 30 * MAX_STEPS
EVENT: Final[ContextAttributes] = {"a": "x" * 65536, "n": 7, "z": "0" * 65536, "b": "true"}


def _nested(function: str, inner: str) -> str:
    depth = min(MAX_PARENTHESES - 1, (MAX_BYTES - len(inner)) // (len(function) + 2))
    return f"{function}(" * depth + inner + ")" * depth


def _joined(start: str, again: str, count: int = MAX_STEPS) -> str:
    return start + again * min(count, (MAX_BYTES - len(start)) // len(again))


_COPIES: Final = f"CONCAT({', '.join(['a'] * 16)})"
#: Expressions of maximum length whose cost would grow faster than their length without a bound.
SHAPES: Final = {
    "minus": "-" * (MAX_BYTES - 1) + "a",
    "not": "NOT " * 2000 + "a",
    "both": _joined("", "NOT - ", MAX_STEPS // 2) + "a",
    "missing": _joined("c", " + c"),
    "failing casts": _joined("a", " + a"),
    "casts of long zeros": _joined("z", " + z"),
    "Booleans of long texts": _joined("a", " OR a"),
    "logic": _joined("a", " XOR b"),
    "a set whose casts fail": f"n IN ({', '.join(['a'] * (MAX_STEPS - 1))})",
    "a set of errors": f"n IN ({', '.join(['c'] * (MAX_STEPS - 1))})",
    "patterns": _joined("a", " LIKE '%x%x%'", 500),
    "one pattern": f"a LIKE '{'%x' * 4000}'",
    "a pattern of any characters": f"a LIKE '%{'_' * 4000}y%'",
    "long texts and patterns": _joined(f"{_COPIES} LIKE '%_y%'", f" OR {_COPIES} LIKE '%_y%'", 50),
    "nested functions": _nested("UPPER", _COPIES),
    "growing texts": _nested("CONCAT", "a, a"),
    "parts of texts": _joined("LEFT(a, 9)", " = RIGHT(a, 9)", 200),
    "functions in a row": _joined("LENGTH(a)", "+LENGTH(a)", 300),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_evaluation_takes_a_bounded_number_of_calls(shape: str) -> None:
    # SUB-423: every accepted expression is cheap
    expression = compile_expression(SHAPES[shape])
    assert _calls(lambda: expression.evaluate(EVENT)) < CALLS


@pytest.mark.parametrize(
    "text",
    [
        _joined("1", "+1", MAX_STEPS + 1),
        _joined("a", " OR a", MAX_STEPS + 1),
        _joined("1", "=1", MAX_STEPS + 1),
        f"1 IN ({','.join(['1'] * (MAX_STEPS + 1))})",
        f"CONCAT({','.join(['1'] * MAX_STEPS)})",
        _joined("", "-NOT ", MAX_STEPS + 1) + "a",
    ],
)
def test_an_expression_has_a_bounded_number_of_steps(text: str) -> None:
    # SUB-423: a limit on the length alone would not bound the cost
    assert len(text) <= MAX_BYTES
    with pytest.raises(ParseError, match=f"at most {MAX_STEPS} operators, calls, arguments and elements"):
        compile_expression(text)


def test_signs_in_a_row_do_what_they_do_one_by_one() -> None:
    # SUB-611, SUB-642: also for the least Integer, which has no negative, for other types, and for what cannot be cast
    for sign in ("-", "NOT "):
        for operand in ("n", "least", "a", "c", "b", "TRUE", "0"):
            event = {**EVENT, "least": -(2**31)}
            for count in range(1, 8):
                in_a_row = compile_expression(sign * count + operand)
                one_by_one = compile_expression(f"{sign}(" * count + operand + ")" * count)
                assert in_a_row.evaluate(event) == one_by_one.evaluate(event)


def test_an_evaluation_goes_through_a_bounded_amount_of_text() -> None:
    event = {"a": "x" * (1 << 16)}
    most = MAX_TEXT // (1 << 16)
    within = compile_expression(" AND ".join(["LENGTH(a) > 0"] * most))
    assert within.evaluate(event).value is True
    beyond = compile_expression(" AND ".join(["LENGTH(a) > 0"] * (most + 1)))
    assert (beyond.evaluate(event).value, beyond.evaluate(event).errors) == (False, (ErrorKind.GENERIC,))
    assert not beyond.matches(event)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("-0", 0), ("+000", 0), ("0000000000000007", 7), ("2147483647", 2**31 - 1), ("-2147483648", -(2**31))],
)
def test_texts_that_are_integers(text: str, number: int) -> None:
    # SUB-602: an integer may have any number of leading zeros
    assert parse_integer(text) == number


@pytest.mark.parametrize("text", ["", "+", "-", "00x", "2147483648", "12345678901", "0" * 65536 + "x", "1 ", "\u0661"])
def test_texts_that_are_none(text: str) -> None:
    assert parse_integer(text) is None


def _calls(work: Callable[[], Any]) -> int:
    """The number of function calls, including those of built-in functions."""
    count = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count

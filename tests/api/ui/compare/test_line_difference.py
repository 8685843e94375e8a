"""Differences of texts by line: correct for all texts, short for small changes, and fast for any text."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.api.ui.compare.line_difference import line_runs
from annals.api.ui.compare.text_view import ADDED, CHANGED, MAX_LINES, MAX_ROWS, REMOVED, text_difference
from tests.support.examples import examples

LINES = st.lists(st.sampled_from(["a", "b", "c", "{", "}"]) | st.text("xyz", min_size=3, max_size=3), max_size=30)


@settings(max_examples=examples(400), deadline=None)
@given(LINES, LINES)
def test_runs_make_both_texts(left: list[str], right: list[str]) -> None:
    # UI-91
    runs = line_runs(left, right)
    assert [line for run in runs for line in (left[index] for index in run.left)] == left
    assert [line for run in runs for line in (right[index] for index in run.right)] == right
    for run in runs:
        assert run.left or run.right
        lines = [left[index] for index in run.left], [right[index] for index in run.right]
        assert lines[0] == lines[1] if run.is_equal else lines[0] != lines[1]
    assert all(run.is_equal != following.is_equal for run, following in pairwise(runs))


@settings(max_examples=examples(100), deadline=None)
@given(LINES, st.integers(0, 30))
def test_an_added_line_is_one_row(lines: list[str], at: int) -> None:
    changed = [*lines[:at], "new line", *lines[at:]]
    found = text_difference("\n".join(lines), "\n".join(changed))
    assert found is not None
    assert [row.right for row in found.rows if row.change == ADDED] == [
        (min(at, len(lines)) + 1, "new line")
    ] or not lines
    assert not [row for row in found.rows if row.change in (REMOVED, CHANGED)]


def test_rows() -> None:
    # UI-91: unchanged lines are folded, except those around a difference
    left = [f"line {number}" for number in range(20)]
    right = [*left[:10], "line ten", *left[11:], "line 20"]
    found = text_difference("\n".join(left), "\n".join(right))
    assert found is not None and found.left_out == 0
    shown = [(row.change, row.left and row.left[0], row.right and row.right[0], row.folded) for row in found.rows]
    assert shown == [
        ("", None, None, 7),
        *(("", number, number, 0) for number in (8, 9, 10)),
        ("Changed", 11, 11, 0),
        *(("", number, number, 0) for number in (12, 13, 14)),
        ("", None, None, 3),
        *(("", number, number, 0) for number in (18, 19, 20)),
        ("Added", None, 21, 0),
    ]


def test_equal_texts_have_no_rows() -> None:
    found = text_difference("a\nb\n", "a\nb\n")
    assert found is not None and found.rows == []
    formatted = text_difference('{"a":1.50,"b":[]}', '{\n "a": 1.50, "b": [] }', is_formatted=True)
    assert formatted is not None and formatted.rows == []


def test_what_is_too_large_is_left_out() -> None:
    # UI-18, UI-91
    assert text_difference("a\n" * (MAX_LINES + 1), "") is None
    found = text_difference("", "\n".join(map(str, range(MAX_ROWS + 5))))
    assert found is not None and (len(found.rows), found.left_out) == (MAX_ROWS, 5)
    found = text_difference("", "\n".join(["<" * 1_000] * 1_000))
    assert found is not None and 400 < len(found.rows) < 600 and found.left_out == 1_000 - len(found.rows)


HOSTILE = {
    "other lines": ([f"a{number}" for number in range(MAX_LINES)], [f"b{number}" for number in range(MAX_LINES)]),
    "one line": (["a"] * MAX_LINES, [*["a"] * (MAX_LINES - 1), "b"]),
    "two lines": (["a", "b"] * (MAX_LINES // 2), ["b", "a", "a"] * (MAX_LINES // 3)),
    "backwards": ([str(number) for number in range(MAX_LINES)], [str(number) for number in range(MAX_LINES, 0, -1)]),
    "anchors between repeated lines": (
        [line for number in range(100) for line in (f"l{number}", *["a", "b"] * 50)],
        [line for number in range(100) for line in (f"l{number}", *["b", "a", "a"] * 33)],
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_long(name: str) -> None:
    # UI-18: the work for a page is bounded, whatever texts are stored
    left, right = HOSTILE[name]
    started = time.perf_counter()
    line_runs(left, right)
    assert time.perf_counter() - started < 10

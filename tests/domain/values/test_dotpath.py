"""Dot notation: parsing and writing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.values import dot_path
from annals.domain.values.dot_path import PathWildcard


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("name", ("name",)),
        (".name", ("name",)),
        ("['my.name']", ("my.name",)),
        ('["birth.date"]', ("birth.date",)),
        ("[2]", (2,)),
        ('["2"]', ("2",)),
        ("stack[3]", ("stack", 3)),
        ("employee['joe'].addresses[0].state", ("employee", "joe", "addresses", 0, "state")),
        ("labels.a-b:c", ("labels", "a-b:c")),
        ("a['*']", ("a", "*")),
    ],
)
def test_parse(text: str, steps: tuple[str | int, ...]) -> None:
    # FLAG-70: quoted brackets are names, unquoted ones are indexes
    assert dot_path.parse(text) == steps


@pytest.mark.parametrize(
    "text", ["", ".", "a.", "a..b", "a[", "a[x]", "a['b", "a['b']c", "a]", "[-1]", "[^]", "[1:]", "a.*", "a[*]"]
)
def test_other_text_is_refused(text: str) -> None:
    # FLAG-71: the forms for editing are for clients only, wildcards for filters only
    with pytest.raises(ValueError):
        dot_path.parse(text)


def test_wildcards_are_for_those_who_ask() -> None:
    # FLAG-70: `['*']` is a name also where wildcards are allowed
    steps = dot_path.parse("a.*.b[*]['*']", wildcards=True)
    assert steps == ("a", PathWildcard.MEMBER, "b", PathWildcard.ITEM, "*")
    assert dot_path.text(steps) == "a.*.b[*]['*']"


@given(st.lists(st.text(min_size=1) | st.integers(min_value=0), min_size=1))
def test_text_is_parsed_back(steps: list[str | int]) -> None:
    # FLAG-71: a path in an error message can be parsed again, whatever the names
    assert dot_path.parse(dot_path.text(steps)) == tuple(steps)


def test_find() -> None:
    # FLAG-71: a path leads to a value or to None
    value = {"a": [{"b.c": 5}]}
    assert dot_path.find(value, ("a", 0, "b.c")) == 5
    assert dot_path.find(value, ("a", 1)) is None
    assert dot_path.find(value, ("a", "b")) is None
    assert dot_path.find(5, ("a",)) is None

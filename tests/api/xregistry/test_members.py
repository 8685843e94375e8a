"""Splitting the text of stored JSON objects into members."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from annals.api.xregistry.render.json_members import join_members, parse_string, split_members
from annals.domain.values.json_text import dumps, loads

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_cut_and_joined_is_the_same_text(value: dict[str, object]) -> None:
    # SER-13: a stored object is returned byte for byte, however deeply it nests
    text = dumps(value).decode()
    found = split_members(text)
    assert "{" + join_members(found) + "}" == text
    assert {name: json.loads(part) for name, part in found.items()} == json.loads(text)


def test_numbers_are_never_computed() -> None:
    # SER-13: no digit is lost and no number is too long
    text = '{"a":1.10,"b":' + "9" * 5000 + ',"c":{"d":1e999}}'
    assert split_members(text) == {"a": "1.10", "b": "9" * 5000, "c": '{"d":1e999}'}
    assert loads("[1.10]")


def test_strings() -> None:
    assert parse_string('"a\\nb"') == "a\nb"
    assert parse_string('"ab"') == "ab"
    assert parse_string("1") is None
    assert parse_string(None) is None

"""JSON text in and out: numbers keep every digit that was sent (SER-13)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from annals.domain.values.json_text import InvalidJson, Json, dumps, loads, loads_trusted

texts = st.text(st.characters(codec="utf-8"), max_size=8)
numbers = (
    st.integers().map(str)
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.decimals(allow_nan=False, allow_infinity=False).map("{:f}".format)
    | st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,4})?", fullmatch=True)
).map(loads)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
@example(loads("[1.0, 1.10, 1e400, 123456789012345678, 12345678901234567890, 18446744073709551616, -0.0, -0, -0e0]"))
def test_own_text_is_read_as_by_the_exact_reader(value: Json) -> None:
    text = dumps(value)
    assert dumps(loads_trusted(text)) == text == dumps(loads_trusted(text.decode()))
    assert loads_trusted(text) == loads(text)


@pytest.mark.parametrize("damaged", [b'{"a":1,"a":2}', b'{"a":', b'"\xff"', b'"\\ud800"', b"NaN"])
def test_damaged_text_is_refused(damaged: bytes) -> None:
    with pytest.raises(InvalidJson):
        loads_trusted(damaged)

"""Reading and writing JSON text: numbers keep every digit that was sent (SER-13)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from annals.domain.values.json_text import InvalidJson, Json, dumps, is_json, loads, loads_trusted

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


def with_types(value: Json) -> Json:
    """The value with the type of each number."""
    if isinstance(value, dict):
        return {name: with_types(member) for name, member in value.items()}
    return [with_types(item) for item in value] if isinstance(value, list) else (type(value), value)


@given(values, st.booleans())
@example(loads("[999999999999999999, 9007199254740993, 1234567890123456789, -1.0, 1e22]"), True)
def test_text_in_the_form_of_most_programs_is_read_as_any_other(value: Json, is_compact: bool) -> None:
    # bytes may go to a faster parser than characters
    text = dumps(value) if is_compact else dumps(value).replace(b":", b": ")
    assert with_types(loads(text)) == with_types(loads(text.decode()))


@pytest.mark.parametrize("depth", [200, 246, 247, 255, 2000])
def test_depth_is_limited_in_either_form(depth: int) -> None:
    outcomes = []
    for text in (b"[" * depth + b"]" * depth, "[" * depth + "]" * depth):
        try:
            outcomes.append(dumps(loads(text)))
        except InvalidJson as error:
            outcomes.append(str(error).encode())
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("damaged", [b'{"a":1,"a":2}', b'{"a":', b'"\xff"', b'"\\ud800"', b"NaN"])
def test_damaged_text_is_refused(damaged: bytes) -> None:
    with pytest.raises(InvalidJson):
        loads_trusted(damaged)


def accepts(text: bytes) -> bool:
    try:
        loads(text)
    except InvalidJson:
        return False
    return True


# A text that is almost JSON: one byte is replaced or missing
@given(values, st.integers(0, 40), st.sampled_from([b"", b" ", b"1", b'"', b",", b"{", b"]", b"\\", b"\xff", b"\x00"]))
def test_is_json_accepts_what_the_exact_reader_does(value: Json, index: int, byte: bytes) -> None:
    text = dumps(value)
    assert is_json(text)
    damaged = text[:index] + byte + text[index + 1 :]
    assert is_json(damaged) is accepts(damaged)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"a":2}',
        b'{"a":1, "b":2}',
        b"[1.10,1e400,-0,-0.0,12345678901234567890]",
        b"NaN",
        b"-Infinity",
        b'"\\ud800"',
        b'"\\ud83d\\ude00"',
        b"\xef\xbb\xbf1",
        b"",
        *(b"[" * depth + b"]" * depth for depth in (200, 245, 246, 247, 248, 254, 255, 1023, 1025, 5000)),
    ],
)
def test_is_json_at_the_limits(text: bytes) -> None:
    assert is_json(text) is accepts(text)
